"""Answer: call the use case of each kind of WebSocket message, and make the messages that answer it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from millrace.ledger.application.heads import find_head
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import AuthFailed, BadRequest, Forbidden
from millrace.ledger.domain.names import Ledger, split_key
from millrace.ledger.domain.naming import MAX_NAME_BYTES
from millrace.ledger.domain.page import Event
from millrace.live.application.send_snapshot import Overtaken
from millrace.live.application.subscribe import Subscribe
from millrace.live.application.take_place import TakePlace
from millrace.live.domain import dialects
from millrace.live.domain import events as live_events
from millrace.live.domain.events import SYNC
from millrace.live.domain.messages import CAPABILITIES, LIMITS, PAGE_BYTES, Message, message, to_text
from millrace.live.domain.subscribe_request import check_subscribe
from millrace.live.ports import Connection, Cycle, Subscription, Subscriptions, Wire
from millrace.streams.domain.gap import gap_event
from millrace.sync.application.submit import Submit
from millrace.sync.application.sync import Sync
from millrace.sync.domain.read import as_it_came, check_sync, page_json

MAX_SUBSCRIPTIONS = 100

Handler = Callable[[Connection, Mapping[str, Any], Any], "SocketAnswer"]


@dataclass(frozen=True, slots=True)
class SocketAnswer:
    """The connection as the message left it, and what to send. `ends`: close it afterwards."""

    connection: Connection
    messages: Sequence[Message] = ()
    ends: bool = False


def _identity(connection: Connection) -> Identity:
    if connection.identity is None:
        raise BadRequest("Say connect first.", field="type")
    return connection.identity


def _sync_ledger(connection: Connection) -> Ledger:
    return Ledger.of("sync", _identity(connection).tenant, connection.project)


def _no_cursors(_tenant: str, _runtime_id: str, _stream_id: str, _cursor: str) -> int:
    raise BadRequest("Cursors are not served here.", field="cursor")


@dataclass(frozen=True, slots=True)
class Answers:
    verify: Callable[[str], Identity]
    submit: Submit
    sync: Sync
    subscribe: Subscribe
    subscriptions: Subscriptions
    wire: Wire
    clock: Callable[[], int]
    new_id: Callable[[], str]
    ledger_of: Callable[[Connection], Ledger] = _sync_ledger
    resume: Callable[[str, str, str, str], int] = _no_cursors
    """The position that a stream's cursor stands at: tenant, runtime, stream, cursor."""
    place: TakePlace | None = None
    """None: a tenant may have any number of connections and subscriptions."""

    @property
    def by_type(self) -> Mapping[str, Handler]:
        return {
            "connect": self.on_connect,
            "submit_events": self.on_submit,
            "sync": self.on_sync,
            "heartbeat": self.on_heartbeat,
            "disconnect": self.on_disconnect,
            "subscribe": self.on_subscribe,
            "unsubscribe": self.on_unsubscribe,
        }

    def on_connect(self, connection: Connection, payload: Mapping[str, Any], msg_id: Any) -> SocketAnswer:
        if connection.identity is not None:
            raise BadRequest("This connection is connected already; open another one.", field="type")
        token = payload.get("token")
        if not isinstance(token, str) or not token:
            raise AuthFailed("connect needs a token.", field="token")
        identity = self.verify(token)
        if payload.get("client_id") != identity.client_id:
            raise AuthFailed("client_id is not the client this token was issued to.", field="client_id")
        project = _project(payload.get("project"), identity)
        ledger = Ledger.of("sync", identity.tenant, project)
        head = find_head(self.sync.log, ledger, self.sync.state.marks(ledger).hint)
        content = {
            "client_id": identity.client_id,
            "project": project,
            "server_time": self.clock(),
            "server_last_committed_id": head,
            "limits": LIMITS,
            "capabilities": CAPABILITIES,
        }
        if self.place is not None:
            self.place.for_connection(identity.tenant, connection.id)
        known = replace(connection, identity=identity, project=project, expires_ms=identity.expires_ms)
        return SocketAnswer(known, [message("connected", content, msg_id)])

    def on_submit(
        self, connection: Connection, payload: Mapping[str, Any], msg_id: Any, trace: str = ""
    ) -> SocketAnswer:
        stops = dialects.stops_at_first_rejection(connection.dialect)
        results = self.submit(
            _identity(connection), connection.project, payload, connection.id, trace, stop_at_rejection=stops
        )
        return SocketAnswer(connection, [message("submit_events_result", {"results": results}, msg_id)])

    def on_sync(self, connection: Connection, payload: Mapping[str, Any], msg_id: Any) -> SocketAnswer:
        """A cycle begins with the subscription made durable, then the head is read, then the pages (S11)."""
        identity = _identity(connection)
        if payload.get("project") not in (None, connection.project):
            raise Forbidden("This connection is for another project.", field="project")
        asked = check_sync(payload, identity, connection.project)
        partitions = None if asked.partitions is None else tuple(asked.partitions)
        ledger = self.ledger_of(connection)
        cycle, sync_to = connection.cycle, None
        if cycle is not None and (cycle.partitions, cycle.next_since) == (partitions, asked.since):
            sync_to = cycle.sync_to
        else:
            # A new cycle ends at the head of now, whatever watermark the client remembers from another connection:
            # what lies between that and this subscription would come from nowhere.
            self._subscribe_to_sync(connection, ledger, partitions, payload)
        page = self.sync(ledger, partitions, asked.since, asked.limit, PAGE_BYTES, sync_to, _weigher(connection))
        going_on = Cycle(partitions, page.next_since, page.sync_to) if page.has_more else None
        content = json.loads(page_json(asked.partitions, page))
        if connection.dialect != dialects.SNAKE:
            content["events"] = [as_it_came(event) for event in page.events]
        return SocketAnswer(replace(connection, cycle=going_on), [message("sync_response", content, msg_id)])

    def _subscribe_to_sync(
        self, connection: Connection, ledger: Ledger, partitions: tuple[str, ...] | None, payload: Mapping[str, Any]
    ) -> None:
        """Whatever was known to be committed before the subscription is durable comes with the pages."""
        wanted = partitions
        if payload.get("subscription_partitions") is not None:
            asked = {"since_committed_id": 0, "partitions": payload["subscription_partitions"]}
            wanted = tuple(check_sync(asked, _identity(connection), connection.project).partitions or ())
        committed = self.sync.state.marks(ledger).hint
        self.subscriptions.add(_subscription(connection, SYNC, ledger, wanted, committed))

    def on_heartbeat(self, connection: Connection, _payload: Mapping[str, Any], msg_id: Any) -> SocketAnswer:
        return SocketAnswer(connection, [message("heartbeat_ack", {"server_time": self.clock()}, msg_id)])

    def on_disconnect(self, connection: Connection, _payload: Mapping[str, Any], _msg_id: Any) -> SocketAnswer:
        return SocketAnswer(connection, ends=True)

    def on_subscribe(self, connection: Connection, payload: Mapping[str, Any], msg_id: Any) -> SocketAnswer:
        """The frames go out as they are read; a connection that is gone meanwhile is forgotten."""
        asked = check_subscribe(payload, _identity(connection))
        if connection.subscribed >= MAX_SUBSCRIPTIONS:
            rule = f"A connection may subscribe {MAX_SUBSCRIPTIONS} times; open another one."
            raise BadRequest(rule, field="type", max_subscriptions=MAX_SUBSCRIPTIONS)
        connection = replace(connection, subscribed=connection.subscribed + 1)
        subscription = _subscription(connection, self.new_id(), asked.ledger, None, 0)

        start = asked.start
        if asked.cursor is not None:
            resumed = self.resume(_identity(connection).tenant, *asked.cursor)
            start = lambda _floor, _head: resumed  # noqa: E731

        def opened(watermark: int, begin: int) -> bool:
            if self.place is not None:
                self.place.for_subscription(_identity(connection).tenant, connection.id, subscription.id)
            content: dict[str, Any] = {"subscription_id": subscription.id}
            if asked.announces_watermark:
                content["snapshot_high_watermark_seq_no"] = watermark
            if not self._post(connection, message("subscribed", content, msg_id)):
                return False
            return begin == 0 or not asked.tells_gap or self._post_gap(subscription, begin)

        try:
            alive = self.subscribe(subscription, start, opened, partial(post_event, self.wire))
        except Overtaken as lost:
            texts = live_events.overtaken(subscription, lost.lost, lost.left, self.clock(), lost.watermark)
            alive = all(self.wire.post(connection.id, text) for text in texts)
        return SocketAnswer(connection, ends=not alive)

    def _post_gap(self, to: Subscription, begin: int) -> bool:
        """What is gone below the start is told before anything else: the floor is above 1 (T8, T9)."""
        runtime_id, stream_id = split_key(to.ledger)[2:]
        event = gap_event(runtime_id, stream_id, 1, begin + 1, self.clock())
        return self.wire.post(to.connection, live_events.gap(to.dialect, to.project, to.id, "snapshot", event))

    def on_unsubscribe(self, connection: Connection, payload: Mapping[str, Any], _msg_id: Any) -> SocketAnswer:
        subscription_id = payload.get("subscription_id")
        if not isinstance(subscription_id, str) or not subscription_id:
            raise BadRequest("unsubscribe needs a subscription_id.", field="subscription_id")
        if len(subscription_id.encode()) > MAX_NAME_BYTES:
            raise BadRequest(f"subscription_id is at most {MAX_NAME_BYTES} bytes.", field="subscription_id")
        self.subscriptions.remove(connection.id, subscription_id)
        return SocketAnswer(connection)

    def _post(self, connection: Connection, sent: Message) -> bool:
        text = to_text(dialects.write(connection.dialect, sent, project=connection.project))
        return self.wire.post(connection.id, text)


def post_event(wire: Wire, to: Subscription, phase: str, event: Event) -> bool:
    return wire.post(
        to.connection, live_events.subscribed_event(to.dialect, to.project, to.id, phase, to.ledger, event)
    )


def _weigher(connection: Connection) -> Callable[[Event], int]:
    """A page is cut by what its events take in the connection's own dialect."""

    def weigh(event: Event) -> int:
        written = dialects.write_event(connection.dialect, as_it_came(event), connection.project)
        return len(to_text(written).encode()) + 1

    return weigh


def _project(asked: Any, identity: Identity) -> str:
    """Without a project the token's only one is meant."""
    if asked is None and len(identity.projects) == 1:
        return next(iter(identity.projects))
    if not isinstance(asked, str) or not asked:
        raise BadRequest("connect needs a project: the token names several or none.", field="project")
    identity.require_project(asked)
    return asked


def _subscription(
    connection: Connection, id_: str, ledger: Ledger, partitions: tuple[str, ...] | None, after: int
) -> Subscription:
    return Subscription(
        connection.id,
        id_,
        ledger.name,
        partitions,
        connection.dialect,
        connection.project,
        connection.expires_ms,
        after,
    )
