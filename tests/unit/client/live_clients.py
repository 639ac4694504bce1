"""Live clients of a hub that misbehaves, for the tests of S17."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from millrace_client.sync.live import Live
from millrace_client.sync.settings import Settings
from millrace_client.sync.store import Store
from tests.unit.client.fake_hub import Answer, FakeHub, Json, Peer, Twist

WAITS = 20


def run(test: Coroutine[Any, Any, None]) -> None:
    async def timed() -> None:
        async with asyncio.timeout(WAITS):
            await test

    asyncio.run(timed())


class Naps:
    """Sleeping that takes no time but is remembered."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        await asyncio.sleep(0)


def live(hub: FakeHub, store: Store | Path | str = ":memory:", **changes: Any) -> Live:
    outside: dict[str, Any] = {
        name: changes.pop(name) for name in ("token", "on_status", "client_id") if name in changes
    }
    chosen = Settings(**({"sleep": Naps()} | changes))
    known: dict[str, Any] = {"token": "T", "client_id": "C1"} | outside
    return Live(hub.url, "demo", known.pop("token"), store=store, settings=chosen, **known)


async def positions(client: Live, most: int, partitions: Sequence[str] | None = None, **options: Any) -> list[int]:
    return [event["committed_id"] async for event in client.follow(partitions, most=most, **options)]


def item(event_id: str, kind: str = "note", **payload: Any) -> Json:
    return {"id": event_id, "partitions": ["a"], "event": {"type": kind, "payload": payload}}


async def drop(peer: Peer, _: Json, __: Answer) -> None:
    peer.drop()


async def answer_and_drop(peer: Peer, _: Json, answer: Answer) -> None:
    await answer()
    peer.drop()


async def answer_and_close(peer: Peer, _: Json, answer: Answer) -> None:
    await answer()
    await peer.connection.close()


async def server_error(peer: Peer, message: Json, _: Answer) -> None:
    await peer.error("server_error", message["msg_id"])


async def slow_down(peer: Peer, message: Json, _: Answer) -> None:
    await peer.error("rate_limited", message["msg_id"], retry_after_ms=1500)


async def error_for_nobody(peer: Peer, _: Json, answer: Answer) -> None:
    await answer()
    await peer.error("bad_request")


async def nonsense(peer: Peer, _: Json, answer: Answer) -> None:
    await peer.connection.send("{")
    await answer()


async def silence(_: Peer, __: Json, ___: Answer) -> None:
    pass


TWISTS: list[Twist] = [
    drop,
    answer_and_drop,
    answer_and_close,
    server_error,
    slow_down,
    error_for_nobody,
    nonsense,
    silence,
]


async def honest(_: Peer, __: Json, answer: Answer) -> None:
    await answer()
