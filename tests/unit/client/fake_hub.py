"""A hub's WebSocket side on a loopback port that keeps to the contract and can be told to be difficult within it."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import Any, Self

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

Json = dict[str, Any]


class Peer:
    """One connection, as the hub sees it; broadcasts wait in `queue` until they are delivered, in order."""

    def __init__(self, hub: FakeHub, connection: ServerConnection) -> None:
        self.hub = hub
        self.connection = connection
        self.subscription: list[str] | None = None
        self.subscribed = False
        self.sync_to: int | None = None
        self.queue: deque[Json] = deque()
        self.sent: list[Json] = []
        self._delivering = asyncio.Lock()

    async def say(self, kind: str, payload: Json, msg_id: str | None = None) -> None:
        message = {"type": kind, "protocol_version": "1.0", "payload": payload}
        await self.connection.send(json.dumps(message if msg_id is None else message | {"msg_id": msg_id}))

    async def error(self, code: str, msg_id: str | None = None, **details: Any) -> None:
        await self.say("error", {"code": code, "message": "because", "details": details}, msg_id)
        if code in {"auth_failed", "server_error", "protocol_version_unsupported"}:
            await self.connection.close()

    async def deliver(self, most: int | None = None) -> None:
        async with self._delivering:
            while self.queue and (most is None or most > 0):
                self.sent.append(self.queue.popleft())
                await self.say("event_broadcast", self.sent[-1])
                most = None if most is None else most - 1

    def drop(self) -> None:
        self.connection.transport.abort()

    def wants(self, event: Json) -> bool:
        return self.subscribed and (
            self.subscription is None or bool(set(self.subscription) & set(event["partitions"]))
        )


Answer = Callable[[], Awaitable[None]]
Twist = Callable[[Peer, Json, Answer], Awaitable[None]]


class FakeHub:
    """`twists[kind]` are used up one a message: each gets the peer, the message and a way to answer it properly."""

    def __init__(self, page_size: int = 2) -> None:
        self.page_size = page_size
        self.log: list[Json] = []
        self.peers: list[Peer] = []
        self.heard: list[Json] = []
        self.twists: defaultdict[str, deque[Twist]] = defaultdict(deque)
        self.every: Twist | None = None
        self.tokens: set[str] | None = None
        self.pruned_through = 0
        self.prompt = True
        self.url = ""
        self._news = asyncio.Condition()
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await serve(self._handle, "127.0.0.1", 0, compression=None, ping_interval=None, close_timeout=1)
        port = next(iter(self._server.sockets)).getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    def payloads(self, kind: str) -> list[Json]:
        return [message["payload"] for message in self.heard if message["type"] == kind]

    async def hears(self, kind: str, times: int) -> None:
        """Wait until so many messages of a kind have come."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.payloads(kind)) >= times)

    def commit(self, *partitions: str, event_id: str | None = None, origin: Peer | None = None) -> Json:
        number = len(self.log) + 1
        event = {
            "committed_id": number,
            "id": event_id or f"e{number}",
            "client_id": "C2",
            "partitions": sorted(partitions) or ["a"],
            "event": {"type": "note", "payload": {"n": number}},
            "status_updated_at": "2025-01-01T00:00:00Z",
        }
        self.log.append(event)
        for peer in self.peers:
            if peer is not origin and peer.wants(event):
                peer.queue.append(event)
        return event

    async def publish(self, *partitions: str) -> Json:
        event = self.commit(*partitions)
        await self.deliver()
        return event

    async def deliver(self) -> None:
        for peer in list(self.peers):
            try:
                await peer.deliver()
            except ConnectionClosed:
                continue

    async def _handle(self, connection: ServerConnection) -> None:
        peer = Peer(self, connection)
        self.peers.append(peer)
        try:
            async for raw in connection:
                await self._take(peer, json.loads(raw))
        except ConnectionClosed:
            pass
        finally:
            self.peers.remove(peer)

    async def _take(self, peer: Peer, message: Json) -> None:
        self.heard.append(message)
        async with self._news:
            self._news.notify_all()
        kind = message["type"]

        async def answer() -> None:
            await getattr(self, f"_{kind}")(peer, message["payload"], message["msg_id"])

        twists = self.twists[kind]
        twist = twists.popleft() if twists else self.every
        await (twist(peer, message, answer) if twist else answer())
        if self.prompt:
            await self.deliver()

    async def _connect(self, peer: Peer, payload: Json, msg_id: str) -> None:
        if self.tokens is not None and payload["token"] not in self.tokens:
            await peer.error("auth_failed", msg_id)
            return
        hello = {"client_id": payload["client_id"], "server_last_committed_id": len(self.log), "limits": {}}
        await peer.say("connected", hello, msg_id)

    async def _submit_events(self, peer: Peer, payload: Json, msg_id: str) -> None:
        await peer.say("submit_events_result", {"results": [self._submit(peer, i) for i in payload["events"]]}, msg_id)

    def _submit(self, peer: Peer, item: Json) -> Json:
        if item["event"].get("type") == "bad":
            return {"id": item["id"], "status": "rejected", "reason": "validation_failed", "errors": []}
        known = next((event for event in self.log if event["id"] == item["id"]), None)
        event = known or self.commit(*item["partitions"], event_id=item["id"], origin=peer)
        return {"id": item["id"], "status": "committed", "committed_id": event["committed_id"]}

    async def _sync(self, peer: Peer, payload: Json, msg_id: str) -> None:
        since, wanted = payload["since_committed_id"], payload.get("partitions")
        # Subscribed first, then the watermark: nothing falls between.
        peer.subscription, peer.subscribed = payload.get("subscription_partitions"), True
        if peer.sync_to is None:
            peer.sync_to = len(self.log)
        kept = [event for event in self.log if max(since, self.pruned_through) < event["committed_id"] <= peer.sync_to]
        found = [event for event in kept if wanted is None or set(wanted) & set(event["partitions"])]
        page, has_more = found[: self.page_size], len(found) > self.page_size
        body = {
            "partitions": wanted,
            "events": page,
            "next_since_committed_id": page[-1]["committed_id"] if has_more else max(since, peer.sync_to),
            "sync_to_committed_id": peer.sync_to,
            "has_more": has_more,
        }
        if since < self.pruned_through:
            body["pruned_through_committed_id"] = self.pruned_through
        if not has_more:
            peer.sync_to = None
        await peer.say("sync_response", body, msg_id)

    async def _heartbeat(self, peer: Peer, _: Json, msg_id: str) -> None:
        await peer.say("heartbeat_ack", {}, msg_id)

    async def _disconnect(self, peer: Peer, _: Json, __: str) -> None:
        await peer.connection.close()
