"""T7, T8: a stream over the WebSocket: watermark, snapshot, live, and what is told to who was overtaken."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.application.prune import Prune
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.canonical import digest
from millrace.ledger.domain.names import Ledger, realtime_ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.live.adapters.memory import MemoryConnections, MemoryHandovers, MemorySubscriptions, MemoryWire
from millrace.live.application.answer import Answers, post_event
from millrace.live.application.broadcast import Broadcast
from millrace.live.application.continue_snapshot import ContinueSnapshot
from millrace.live.application.converse import Converse
from millrace.live.application.send_snapshot import SLICE_MS, SendSnapshot
from millrace.live.application.subscribe import Subscribe
from millrace.live.application.take_turn import TakeTurn
from millrace.live.domain import events as live_events
from millrace.live.ports import Handover
from millrace.sync.adapters.memory import MemoryIndex
from millrace.sync.application.submit import Submit
from millrace.sync.application.sync import Sync
from tests.unit.streams.hub import RUNTIME, STREAM, StreamsHub, event

C = "c1"
SESSION = realtime_ledger("default", "call")


@dataclass
class TalkingWire(MemoryWire):
    """Lets a test do something whenever a frame has gone out."""

    after: Callable[[dict[str, Any]], None] = lambda _frame: None

    def post(self, connection: str, text: str) -> bool:
        reached = MemoryWire.post(self, connection, text)
        self.after(json.loads(text))
        return reached


@dataclass
class Live:
    """A streams hub with a socket."""

    hub: StreamsHub = field(default_factory=StreamsHub)
    connections: MemoryConnections = field(default_factory=MemoryConnections)
    subscriptions: MemorySubscriptions = field(default_factory=MemorySubscriptions)
    wire: TalkingWire = field(default_factory=TalkingWire)
    numbers: Any = field(default_factory=itertools.count)
    expires_ms: int = 10**15
    handovers: MemoryHandovers = field(default_factory=MemoryHandovers)
    slice_ms: int = SLICE_MS

    def __post_init__(self) -> None:
        self.connections.open(C, self.hub.clock.ms)
        self.say("connect", {"token": "t", "client_id": "me"})
        assert [frame["type"] for frame in self.frames()] == ["connected"]

    def verify(self, _token: str) -> Identity:
        claims = {"projects": ["demo"], "partitions": ["runtime:r1", "session:*"], "exp": self.expires_ms // 1000}
        return self.hub.identity(**claims)

    def say(self, kind: str, payload: dict[str, Any]) -> None:
        hub = self.hub
        subscribe = Subscribe(self.sender(), hub.heads)
        answers = Answers(
            self.verify,
            Submit(hub.commit, hub.clock, lambda *_: "open"),
            Sync(hub.log, hub.state, MemoryIndex(), hub.heads, in_turn),
            subscribe,
            self.subscriptions,
            self.wire,
            hub.clock,
            lambda: f"sub{next(self.numbers)}",
            resume=hub.poll.resume,
        )
        take_turn = TakeTurn(self.connections, hub.clock, lambda _ms: None)
        converse = Converse(self.connections, self.subscriptions, self.wire, answers, hub.clock, take_turn)
        converse(C, json.dumps({"type": kind, "protocol_version": "1.0", "payload": payload}))

    def sender(self) -> SendSnapshot:
        hub = self.hub
        parts = (hub.log, hub.state, self.subscriptions, self.handovers, in_turn, hub.clock)
        return SendSnapshot(*parts, slice_ms=self.slice_ms)

    def go_on(self, handover: Handover) -> None:
        """What the function does with a handover."""
        ContinueSnapshot(
            sender=self.sender(),
            connections=self.connections,
            wire=self.wire,
            send=partial(post_event, self.wire),
            farewell=lambda to: live_events.expired(to.dialect, to.project),
            overtaken=lambda to, gone: live_events.overtaken(
                to, gone.lost, gone.left, self.hub.clock(), gone.watermark
            ),
            new_id=lambda: f"sender{next(self.numbers)}",
        )(handover)

    def go_on_to_the_end(self) -> int:
        """How many handovers that took."""
        taken = 0
        while self.handovers.sent:
            self.go_on(self.handovers.sent.pop(0))
            taken += 1
        return taken

    def subscribe(self, **asked: Any) -> None:
        self.say("subscribe", {"kind": "stream", "runtime_id": RUNTIME, "stream_id": STREAM, **asked})

    def fan_out(self, ledger: Ledger | None = None) -> None:
        hub = self.hub
        parts = (hub.log, hub.state, self.subscriptions, self.connections, self.wire)
        farewell = lambda to: live_events.expired(to.dialect, to.project)  # noqa: E731
        Broadcast(*parts, in_turn, hub.clock, live_events.Renderer(), farewell, lambda: True)(ledger or hub.ledger())

    def frames(self) -> list[dict[str, Any]]:
        """What has come since the last look."""
        texts = self.wire.sent.get(C, [])
        taken = [json.loads(text) for text in texts]
        texts.clear()
        return taken

    def emit(self, *ids: str) -> None:
        self.hub.send(*(event(id_) for id_ in ids))


def filled(count: int) -> Live:
    live = Live()
    for first in range(1, count + 1, 5):
        live.emit(*(f"e{n}" for n in range(first, min(first + 5, count + 1))))
    return live


def places(frames: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Phase and position of frames that are all events."""
    assert {frame["type"] for frame in frames} <= {"event"}
    return [(frame["payload"]["phase"], frame["payload"]["event"]["seq_no"]) for frame in frames]


def snapshot(*positions: int) -> list[tuple[str, int]]:
    return [("snapshot", position) for position in positions]


def gap_of(frame: dict[str, Any]) -> tuple[str, int, int, int]:
    """Phase, expected, observed and dropped of a frame that is the hub's own StreamGap."""
    one = frame["payload"]["event"]
    told = one["payload"]
    assert (one["event_type"], one["source_component"], one["stream_id"]) == ("StreamGap", "millrace", STREAM)
    assert (one["event_id"], one["seq_no"]) == (f"gap-{told['observed_seq_no'] - 1}", told["observed_seq_no"] - 1)
    return (
        frame["payload"]["phase"],
        told["expected_seq_no"],
        told["observed_seq_no"],
        told["dropped_count"],
    )


def error_of(frame: dict[str, Any]) -> dict[str, Any]:
    assert frame["type"] == "error"
    details: dict[str, Any] = frame["payload"]["details"]
    return details


@pytest.mark.parametrize("start", ["snapshot", "head", None])
def test_the_first_frame_carries_the_watermark_and_the_snapshot_follows(start: str | None) -> None:
    """T7: then what is live, above it."""
    live = filled(7)
    live.subscribe(**({"start": start} if start else {}))
    opened, *events = live.frames()
    assert opened["type"] == "subscribed"
    assert opened["payload"]["snapshot_high_watermark_seq_no"] == 7
    assert places(events) == snapshot(*range(1, 8))
    assert events[0]["payload"]["event"] == live.hub.stored()[0]
    live.emit("e8", "e9")
    live.fan_out()
    assert places(live.frames()) == [("live", 8), ("live", 9)]


def test_a_tail_begins_at_the_watermark() -> None:
    """T7: also on a pruned stream; nobody asked for what is gone."""
    live = filled(7)
    live.hub.prune(STREAM, 4)
    live.subscribe(start="tail")
    (opened,) = live.frames()
    assert opened["payload"]["snapshot_high_watermark_seq_no"] == 7
    live.emit("e8")
    live.fan_out()
    assert places(live.frames()) == [("live", 8)]


def test_snapshot_and_live_are_never_mixed_while_others_commit() -> None:
    """T7: snapshot events lie at or below the watermark, live events above it; each comes once and in order."""
    live = filled(6)
    more = iter(range(7, 15))

    def commit_another(_frame: dict[str, Any]) -> None:
        if (n := next(more, None)) is not None:
            live.emit(f"e{n}")
            live.fan_out()

    live.wire.after = commit_another
    live.subscribe()
    live.fan_out()
    opened, *events = live.frames()
    watermark = opened["payload"]["snapshot_high_watermark_seq_no"]
    assert places(events) == [("snapshot" if n <= watermark else "live", n) for n in range(1, 15)]
    assert watermark == 6


@pytest.mark.parametrize("start", ["snapshot", "head"])
@pytest.mark.parametrize("raised", [True, False])
def test_above_a_raised_floor_the_gap_comes_first(start: str, raised: bool) -> None:
    """T7, T8: before anything else after the watermark, also when the floor is still to be raised."""
    live = filled(9)
    live.hub.prune(STREAM, 4)
    if not raised:
        live.hub.state.floors.clear()
    live.subscribe(start=start)
    opened, gap, *events = live.frames()
    assert opened["payload"]["snapshot_high_watermark_seq_no"] == 9
    assert gap_of(gap) == ("snapshot", 1, 5, 4)
    assert places(events) == snapshot(5, 6, 7, 8, 9)


def test_when_everything_is_gone_the_gap_is_the_whole_snapshot() -> None:
    """T7, T8."""
    live = filled(5)
    live.hub.prune(STREAM, 5)
    live.subscribe()
    _, gap = live.frames()
    assert gap_of(gap) == ("snapshot", 1, 6, 5)
    live.emit("e6")
    live.fan_out()
    assert places(live.frames()) == [("live", 6)]


def test_an_empty_stream_has_the_watermark_zero_and_no_gap() -> None:
    """T7."""
    live = Live()
    live.subscribe()
    (opened,) = live.frames()
    assert opened["payload"]["snapshot_high_watermark_seq_no"] == 0
    live.emit("e1")
    live.fan_out()
    assert places(live.frames()) == [("live", 1)]


def test_a_cursor_says_where_to_begin() -> None:
    """T6, T7: right after it, without a gap when nothing after it is gone."""
    live = filled(9)
    cursor = live.hub.next(None, 4).next_cursor
    live.hub.prune(STREAM, 4)
    live.subscribe(cursor=cursor)
    opened, *events = live.frames()
    assert opened["payload"]["snapshot_high_watermark_seq_no"] == 9
    assert places(events) == snapshot(5, 6, 7, 8, 9)
    live.emit("e10")
    live.fan_out()
    assert places(live.frames()) == [("live", 10)]


def test_a_cursor_that_lost_history_is_refused_as_a_poll_refuses_it() -> None:
    """T7, T9: expired once, degraded then; the connection stays, and so does the way back."""
    live = filled(9)
    cursor = live.hub.next(None, 2).next_cursor
    live.hub.prune(STREAM, 4)
    for code in ("CURSOR_EXPIRED", "STREAM_DEGRADED", "STREAM_DEGRADED"):
        live.subscribe(cursor=cursor)
        (frame,) = live.frames()
        assert frame["payload"]["code"] == "bad_request"
        assert error_of(frame)["machine_code"] == f"SDK_RUNTIME_{code}"
    assert not live.subscriptions.rows
    live.subscribe()
    assert gap_of(live.frames()[1]) == ("snapshot", 1, 5, 4)
    assert C not in live.wire.closed


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"cursor": ""}, "SDK_RUNTIME_INVALID_CURSOR"),
        ({"cursor": "nonsense"}, "SDK_RUNTIME_INVALID_CURSOR"),
        ({"cursor": 5}, None),
        ({"cursor": "x", "start": "tail"}, None),
        ({"start": "middle"}, None),
        ({"stream_id": ""}, None),
        ({"runtime_id": "r2"}, None),
    ],
)
def test_a_bad_subscribe_is_refused_and_the_connection_stays(asked: dict[str, Any], code: str | None) -> None:
    """T6, T7."""
    live = filled(2)
    live.subscribe(**asked)
    (frame,) = live.frames()
    assert error_of(frame).get("machine_code") == code
    assert not live.subscriptions.rows
    assert C not in live.wire.closed


def test_a_subscription_overtaken_before_its_first_event_is_told_so_and_ends() -> None:
    """T7: the StreamGap, then the error, and nothing more, whatever comes."""
    live = filled(9)
    cursor = live.hub.next(None, 2).next_cursor

    def prune(frame: dict[str, Any]) -> None:
        if frame["type"] == "subscribed":
            live.hub.prune(STREAM, 6)

    live.wire.after = prune
    live.subscribe(cursor=cursor)
    _, gap, error = live.frames()
    assert gap_of(gap) == ("snapshot", 3, 7, 4)
    details = error_of(error)
    assert (details["machine_code"], details["category"]) == ("SDK_RUNTIME_STREAM_DEGRADED", "Runtime")
    assert details["details"] == {"subscription_id": gap["payload"]["subscription_id"], "floor_seq_no": 7}
    assert_ended(live)


def test_a_subscription_overtaken_in_the_middle_of_its_snapshot_is_told_so_and_ends() -> None:
    """T7: what was read before it is sent, in order, up to the gap."""
    live = filled(450)

    def prune(frame: dict[str, Any]) -> None:
        if frame["type"] == "event" and frame["payload"]["event"]["seq_no"] == 100:
            live.hub.prune(STREAM, 300)

    live.wire.after = prune
    live.subscribe()
    _, *events, gap, error = live.frames()
    sent = len(events)
    assert 100 <= sent < 300
    assert places(events) == snapshot(*range(1, sent + 1))
    assert gap_of(gap) == ("snapshot", sent + 1, 301, 300 - sent)
    assert error_of(error)["machine_code"] == "SDK_RUNTIME_STREAM_DEGRADED"
    assert_ended(live)


def test_a_subscription_overtaken_above_its_watermark_gets_a_live_gap() -> None:
    """T7: phases are not mixed there either."""
    live = filled(3)

    def overtake(frame: dict[str, Any]) -> None:
        if frame["type"] == "event" and frame["payload"]["event"]["seq_no"] == 3:
            live.wire.after = lambda _frame: None
            live.emit("e4", "e5", "e6")
            live.fan_out()
            live.hub.prune(STREAM, 5)

    live.wire.after = overtake
    live.subscribe()
    _, *events, gap, error = live.frames()
    assert places(events) == snapshot(1, 2, 3)
    assert gap_of(gap) == ("live", 4, 6, 2)
    assert error_of(error)["machine_code"] == "SDK_RUNTIME_STREAM_DEGRADED"
    assert_ended(live)


def test_a_live_subscription_overtaken_by_the_floor_is_told_so_and_ends() -> None:
    """T7: the fan-out comes too late for it; another subscription of the connection goes on."""
    live = filled(3)
    live.subscribe(start="tail")
    live.subscribe(start="tail", stream_id="s2")
    live.frames()
    live.emit("e4", "e5", "e6")
    live.hub.prune(STREAM, 5)
    live.fan_out()
    gap, error = live.frames()
    assert gap_of(gap) == ("live", 4, 6, 2)
    assert error_of(error)["machine_code"] == "SDK_RUNTIME_STREAM_DEGRADED"
    assert error_of(error)["details"]["floor_seq_no"] == 6
    assert_ended(live, left=1)
    live.hub.send(event("x"), stream="s2")
    live.fan_out(live.hub.ledger("s2"))
    assert places(live.frames()) == [("live", 1)]


def test_what_was_pruned_after_it_was_sent_is_no_loss() -> None:
    """T7, T8: a fan-out that reads old pages again, pruned by now, ends nobody."""
    live = filled(3)
    live.subscribe()
    live.frames()
    live.hub.prune(STREAM, 3)
    live.emit("e4")
    live.fan_out()
    assert places(live.frames()) == [("live", 4)]


def assert_ended(live: Live, left: int = 0) -> None:
    assert len(live.subscriptions.rows) == left
    live.wire.after = lambda _frame: None
    live.emit("later")
    live.fan_out()
    assert live.frames() == []
    assert C not in live.wire.closed, "the connection itself stays"


def commit_to_session(live: Live, *ids: str) -> None:
    drafts = [Draft(id_, digest(id_.encode()), json.dumps({"eventId": id_}).encode()) for id_ in ids]
    live.hub.commit(SESSION, drafts, Origin("other"))


def session_error(frames: list[dict[str, Any]], pruned_through: int) -> None:
    (error,) = frames
    details = error_of(error)
    assert error["payload"]["code"] == "bad_request"
    assert details["prunedThrough"] == pruned_through
    assert "machine_code" not in details


def test_a_realtime_session_that_was_overtaken_gets_the_error_only() -> None:
    """R9, T7: the StreamGap is the streams contract's own; in a snapshot and live."""
    live = Live()
    commit_to_session(live, "a", "b", "c", "d")

    def prune(frame: dict[str, Any]) -> None:
        if frame["type"] == "subscribed":
            Prune(live.hub.log, live.hub.state, ())(SESSION, 3)

    live.wire.after = prune
    live.say("subscribe", {"kind": "session", "session_id": "call", "after_sequence": 1})
    session_error(live.frames()[1:], 3)
    assert not live.subscriptions.rows
    live.wire.after = lambda _frame: None
    live.say("subscribe", {"kind": "session", "session_id": "call", "after_sequence": 4})
    assert [frame["type"] for frame in live.frames()] == ["subscribed"]
    commit_to_session(live, "e", "f")
    Prune(live.hub.log, live.hub.state, ())(SESSION, 5)
    live.fan_out(SESSION)
    session_error(live.frames(), 5)
    assert not live.subscriptions.rows
    assert C not in live.wire.closed


def test_an_expired_token_is_told_that_and_not_what_was_lost() -> None:
    """T7, S15: and the connection goes."""
    live = Live(expires_ms=StreamsHub().clock.ms + 60_000)
    live.subscribe()
    live.frames()
    live.emit("e1", "e2")
    live.hub.prune(STREAM, 1)
    live.hub.clock.advance(60_000)
    live.fan_out()
    (frame,) = live.frames()
    assert frame["payload"]["code"] == "auth_failed"
    assert C in live.wire.closed
