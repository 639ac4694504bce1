"""T6, T8–T10: polls read on without gap, skip or reset; what is lost is told once, and nobody is stuck."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.ledger.adapters.memory import MemoryLog
from millrace.ledger.domain import names
from millrace.ledger.domain.errors import Forbidden
from millrace.streams.application.poll import PolledBatch
from millrace.streams.domain.cursor import read_cursor, stream_scope
from millrace.streams.domain.errors import (
    BatchTooLarge,
    CursorExpired,
    InvalidArgument,
    InvalidCursor,
    InvalidState,
    MaxPollEventsExceeded,
    SdkError,
    StreamDegraded,
)
from tests.unit.streams.hub import RUNTIME, STREAM, StreamsHub, event, told
from tests.unit.streams.views import LateLog


def hub_with(count: int, batch: int = 5) -> StreamsHub:
    """Events e1, e2, … at positions 1, 2, …, in pages of five."""
    hub = StreamsHub()
    for first in range(1, count + 1, batch):
        hub.send(*(event(f"e{n}") for n in range(first, min(first + batch, count + 1))))
    return hub


def ids(batch: PolledBatch) -> list[str]:
    return [one["event_id"] for one in told(batch)]


def seqs(batch: PolledBatch) -> list[int]:
    return [one["seq_no"] for one in told(batch)]


def half_prune(hub: StreamsHub, through: int, stream: str = STREAM) -> None:
    """What a pruner leaves that died after emptying pages and before raising the floor."""
    floor = hub.state.marks(hub.ledger(stream)).floor
    hub.prune(stream, through)
    hub.state.floors[hub.ledger(stream).name] = floor


def test_polls_read_on_in_order_without_gap_or_repeat() -> None:
    """T3, T6."""
    hub = hub_with(12)
    cursor, seen = None, []
    for size in (1, 4, 3, 4):
        batch = hub.next(cursor, size)
        assert (len(batch.events), batch.dropped_count) == (size, 0)
        seen += told(batch)
        cursor = batch.next_cursor
    assert [one["seq_no"] for one in seen] == list(range(1, 13))
    assert seen == hub.stored()
    assert seen[0] == {**event("e1"), "runtime_id": RUNTIME, "stream_id": STREAM, "seq_no": 1}


def test_at_the_head_a_poll_is_empty_and_its_cursor_goes_on() -> None:
    """T6."""
    hub = hub_with(3)
    cursor = hub.next().next_cursor
    for _ in range(2):
        batch = hub.next(cursor)
        assert (batch.events, batch.dropped_count) == ([], 0)
        cursor = batch.next_cursor
    hub.send(event("e4"))
    assert ids(hub.next(cursor)) == ["e4"]


def test_an_empty_stream_can_be_polled_from_the_start() -> None:
    """T6."""
    hub = StreamsHub()
    batch = hub.next()
    assert (batch.events, batch.dropped_count) == ([], 0)
    hub.send(event("e1"))
    assert ids(hub.next(batch.next_cursor)) == ["e1"]


def test_an_older_cursor_gives_the_same_events_again() -> None:
    """T3: at least once; a cursor stands where it stands, whatever was polled since."""
    hub = hub_with(6)
    early = hub.next(None, 2).next_cursor
    hub.next(early, 3)
    hub.restart()
    assert seqs(hub.next(early, 3)) == [3, 4, 5]


def test_without_max_the_limit_applies_and_above_it_is_refused() -> None:
    """T6, T10."""
    hub = hub_with(9)
    hub.agree(limits={"max_poll_events": 4})
    assert seqs(hub.next()) == [1, 2, 3, 4]
    assert seqs(hub.next(None, 4)) == [1, 2, 3, 4]
    with pytest.raises(MaxPollEventsExceeded) as refusal:
        hub.next(None, 5)
    assert (refusal.value.status, refusal.value.details) == (400, {"field": "max", "max_poll_events": 4})


@pytest.mark.parametrize("bad", [0, -1])
def test_a_max_below_1_is_an_invalid_argument(bad: int) -> None:
    """T6."""
    with pytest.raises(InvalidArgument) as refusal:
        hub_with(1).next(None, bad)
    assert refusal.value.details["field"] == "max"


def test_a_poll_reaches_across_pages_and_buckets() -> None:
    """T6, T10: with the largest limit that can be negotiated."""
    hub = hub_with(2_500, 100)
    hub.agree(limits={"max_poll_events": 10_000})
    assert seqs(hub.next()) == list(range(1, 2_501))
    hub.restart()
    cursor = hub.next(None, 1_020).next_cursor
    assert seqs(hub.next(cursor, 10)) == list(range(1_021, 1_031))
    assert seqs(hub.next(cursor)) == list(range(1_021, 2_501))


def test_before_negotiation_there_is_nothing_to_poll() -> None:
    """T1."""
    with pytest.raises(InvalidState):
        StreamsHub(negotiated=False).next()


@pytest.mark.parametrize(
    "claims", [{"roles": ["producer"]}, {"partitions": ["runtime:r2"]}, {"partitions": ["session:*"]}]
)
def test_a_token_needs_the_role_and_the_runtime(claims: dict[str, Any]) -> None:
    """T12."""
    hub = hub_with(1)
    with pytest.raises(Forbidden):
        hub.next(**claims)
    assert ids(hub.next(roles=["consumer"], partitions=["runtime:r1"])) == ["e1"]


def test_a_cursor_of_elsewhere_is_invalid_and_never_a_new_start() -> None:
    """T6: another stream, runtime or tenant, a marker list's, none at all in a string."""
    hub = hub_with(3)
    hub.agree("r2")
    hub.negotiate(hub.identity(tenant="t2"), RUNTIME, {"supported_contract_versions": [2]})
    for n in range(2):
        hub.markers.create(hub.identity(), RUNTIME, {"label": f"{n}", "position": {"lat": 0, "lon": 0}})
    cursor = hub.next().next_cursor
    marker_cursor = hub.markers.list(hub.identity(), RUNTIME, None, 1, None)["next_cursor"]
    ways: list[tuple[str, dict[str, Any]]] = [
        (cursor, {"stream": "s2"}),
        (cursor, {"stream": "markers"}),
        (cursor, {"runtime": "r2"}),
        (cursor, {"tenant": "t2"}),
        (marker_cursor, {}),
        (marker_cursor, {"stream": "markers"}),
        ("", {}),
        ("nonsense", {}),
    ]
    for sent, way in ways:
        with pytest.raises(InvalidCursor):
            hub.next(sent, **way)
    with pytest.raises(InvalidCursor):
        hub.markers.list(hub.identity(), RUNTIME, cursor, None, None)
    assert hub.next(cursor).events == []


def test_a_cursor_outlives_one_rotation_of_the_secret_and_not_two() -> None:
    """T6: and after the second it is told to be invalid, not taken for the start."""
    hub = hub_with(3)
    cursor = hub.next(None, 1).next_cursor
    hub.rotate("second secret")
    assert seqs(hub.next(cursor, 1)) == [2]
    renewed = hub.next(cursor, 1).next_cursor
    hub.rotate("third secret")
    with pytest.raises(InvalidCursor):
        hub.next(cursor)
    assert seqs(hub.next(renewed)) == [3]


def test_a_process_that_knows_only_the_old_key_looks_the_new_one_up() -> None:
    """T6: at most every ten seconds, since anybody can send a cursor that names an unknown key."""
    hub = hub_with(3)
    hub.next()
    old_process = hub.keys
    hub.secrets["AWSCURRENT"], hub.secrets["AWSPREVIOUS"] = "second secret", "first secret"
    hub.restart()
    cursor = hub.next(None, 1).next_cursor
    hub.keys = old_process
    hub.clock.advance(10_000)
    assert seqs(hub.next(cursor)) == [2, 3]


def test_below_the_floor_a_cursor_expires_once_and_its_subscription_is_degraded_then() -> None:
    """T9: for each of its cursors, also those that are not below the floor; other subscriptions are not affected."""
    hub = hub_with(10)
    first = hub.next(None, 2)
    ahead = hub.next(first.next_cursor, 6).next_cursor
    other = hub.next(None, 7).next_cursor
    hub.prune(STREAM, 4)
    with pytest.raises(CursorExpired) as refusal:
        hub.next(first.next_cursor)
    assert refusal.value.status == 410
    assert refusal.value.details == {"field": "cursor", "cursor_seq_no": 2, "floor_seq_no": 5}
    hub.restart()
    for cursor in (first.next_cursor, ahead, first.next_cursor):
        with pytest.raises(StreamDegraded) as degraded:
            hub.next(cursor)
        assert degraded.value.status == 409
    assert seqs(hub.next(other)) == [8, 9, 10]
    again = hub.next(None, 3)
    assert seqs(again) == [4, 5, 6], "the way back is a poll without cursor"
    assert seqs(hub.next(again.next_cursor)) == [7, 8, 9, 10]


def test_a_cursor_just_below_the_floor_goes_on() -> None:
    """T9: nothing it has not seen is gone."""
    hub = hub_with(10)
    cursor = hub.next(None, 4).next_cursor
    hub.prune(STREAM, 4)
    batch = hub.next(cursor)
    assert (seqs(batch), batch.dropped_count) == ([5, 6, 7, 8, 9, 10], 0)


def test_a_lost_subscription_of_one_stream_leaves_the_same_of_another_alone() -> None:
    """T9: a mark is of a stream and a subscription."""
    hub = hub_with(4)
    hub.send(*(event(f"x{n}") for n in range(4)), stream="s2")
    ours, theirs = hub.next(None, 1).next_cursor, hub.next(None, 1, stream="s2").next_cursor
    hub.prune(STREAM, 3)
    with pytest.raises(CursorExpired):
        hub.next(ours)
    assert seqs(hub.next(theirs, stream="s2")) == [2, 3, 4]


def test_the_first_batch_above_a_raised_floor_begins_with_the_gap() -> None:
    """T8, T9: `gap-{floor-1}` at floor−1, expected 1, observed the floor."""
    hub = hub_with(10)
    hub.prune(STREAM, 6)
    batch = hub.next(None, 3)
    gap, *events = told(batch)
    assert gap == {
        "event_id": "gap-6",
        "runtime_id": RUNTIME,
        "stream_id": STREAM,
        "seq_no": 6,
        "contract_version": 2,
        "ts_ms": hub.clock.ms,
        "event_type": "StreamGap",
        "severity": "warn",
        "source_component": "millrace",
        "payload": {"expected_seq_no": 1, "observed_seq_no": 7, "dropped_count": 6},
    }
    assert ([one["seq_no"] for one in events], batch.dropped_count) == ([7, 8], 6)
    following = hub.next(batch.next_cursor)
    assert (seqs(following), following.dropped_count) == ([9, 10], 0)


def test_a_gap_alone_fills_a_batch_of_one() -> None:
    """T9: it counts toward max, and its cursor goes on with the first retained event."""
    hub = hub_with(10)
    hub.prune(STREAM, 6)
    batch = hub.next(None, 1)
    assert (ids(batch), batch.dropped_count) == (["gap-6"], 6)
    assert seqs(hub.next(batch.next_cursor, 1)) == [7]


def test_when_everything_is_gone_the_gap_stands_at_the_head() -> None:
    """T9: and what comes next follows it."""
    hub = hub_with(5)
    hub.prune(STREAM, 5)
    batch = hub.next()
    assert (ids(batch), batch.dropped_count) == (["gap-5"], 5)
    hub.send(event("e6"))
    assert seqs(hub.next(batch.next_cursor)) == [6]


@pytest.mark.parametrize("wanted", [1, 2, None])
@pytest.mark.parametrize("floor", [1, 3])
@pytest.mark.parametrize("through", [6, 10])
def test_a_floor_that_was_not_raised_yet_wedges_nobody(wanted: int | None, floor: int, through: int) -> None:
    """T8, T9: bodies go before the floor rises; who starts over is told of all that is gone, and can go on."""
    hub = hub_with(10)
    hub.prune(STREAM, floor - 1)
    half_prune(hub, through)
    batch = hub.next(None, wanted)
    gap = told(batch)[0]
    assert (gap["event_id"], gap["payload"]["observed_seq_no"]) == (f"gap-{through}", through + 1)
    assert batch.dropped_count == through
    hub.send(event("e11"))
    seen, cursor = seqs(batch), batch.next_cursor
    for _ in range(10):
        batch = hub.next(cursor, wanted)
        seen, cursor = [*seen, *seqs(batch)], batch.next_cursor
    assert seen == [through, *range(through + 1, 12)]


def test_a_page_under_the_floor_that_cannot_be_read_yet_hides_no_loss_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """T8, T9: bodies went up to 6 and the floor says 6. A poll without cursor names all six, not the first five, and
    its cursor goes on; also where a process knows no head and the one it would look for lies under the floor."""
    monkeypatch.setattr(names, "BUCKET", 5)
    hub = StreamsHub()
    for ids_of_page in (("e1", "e2"), ("e3", "e4", "e5"), ("e6",), ("e7",)):
        hub.send(*(event(id_) for id_ in ids_of_page))
    hub.prune(STREAM, 5)
    half_prune(hub, 6)
    assert hub.state.marks(hub.ledger()).floor == 6
    hub.restart()
    pages = hub.log.pages
    hub.log = LateLog(pages, hidden=3)
    batch = hub.next()
    assert (ids(batch), batch.dropped_count) == (["gap-6", "e7"], 6)
    hub.log = MemoryLog(pages)
    hub.send(event("e8"))
    assert ids(hub.next(batch.next_cursor)) == ["e8"]


def test_a_cursor_meets_what_is_gone_also_before_the_floor_is_raised() -> None:
    """T8, T9: what lies before it is given first; then it expires, once."""
    hub = hub_with(10)
    start = hub.next(None, 2).next_cursor
    page = hub.log.pages[hub.ledger().name][6]
    hub.log.replace(hub.ledger(), page.emptied([7, 8]))
    batch = hub.next(start)
    assert seqs(batch) == [3, 4, 5, 6]
    with pytest.raises(CursorExpired) as refusal:
        hub.next(batch.next_cursor)
    assert refusal.value.details == {"field": "cursor", "cursor_seq_no": 6, "floor_seq_no": 9}
    for cursor in (start, batch.next_cursor):
        with pytest.raises(StreamDegraded):
            hub.next(cursor)


def test_of_polls_that_find_the_loss_at_once_one_is_told_that_it_expired() -> None:
    """T9: the others, that the subscription is degraded."""
    hub = hub_with(5)
    cursor = hub.next(None, 1).next_cursor
    hub.prune(STREAM, 3)
    subscription = read_cursor(hub.keys.find, stream_scope("v2", "default", RUNTIME, STREAM), cursor).subscription

    class Late(type(hub.runtimes)):  # type: ignore[misc]
        """Somebody else marks it between our look and our own mark."""

        def is_marked(self, stream: Any, subscription: str) -> bool:
            found: bool = super().is_marked(stream, subscription)
            self.mark(stream, subscription)
            return found

    hub.runtimes = Late(hub.state, hub.clock, hub.runtimes.negotiated)
    with pytest.raises(StreamDegraded):
        hub.next(cursor)
    assert hub.runtimes.marked == {(hub.ledger().name, subscription)}


@pytest.mark.parametrize("hidden", [1, 6])
def test_a_page_that_cannot_be_read_yet_is_no_gap(hidden: int) -> None:
    """T8: the batch ends before it, and the next poll goes on with it."""
    hub = hub_with(15)
    page = hub.log.pages[hub.ledger().name].pop(hidden)
    batch = hub.next()
    assert (seqs(batch), batch.dropped_count) == (list(range(1, hidden)), 0)
    assert hub.next(batch.next_cursor).events == []
    hub.log.pages[hub.ledger().name][hidden] = page
    assert seqs(hub.next(batch.next_cursor)) == list(range(hidden, 16))


def size_of(events: list[bytes]) -> int:
    return len(b"[" + b",".join(events) + b"]")


def test_a_batch_is_filled_up_to_the_limit_in_bytes_exactly() -> None:
    """T10: measured as the JSON array of its events."""
    hub = StreamsHub()
    hub.send(*(event(f"e{n}", payload={"pad": "ü" * (40 + n)}) for n in range(20)))
    everything = hub.next().events
    for count in (1, 2, 7, 19):
        exact = size_of(everything[:count])
        hub.agree(limits={"max_event_bytes": 256, "max_batch_bytes": exact})
        assert hub.next().events == everything[:count]
        hub.agree(limits={"max_event_bytes": 256, "max_batch_bytes": exact + len(everything[count])})
        assert hub.next().events == everything[:count], "one byte is missing for the next"
        hub.agree(limits={"max_event_bytes": 256, "max_batch_bytes": exact + len(everything[count]) + 1})
        assert hub.next().events == everything[: count + 1]


def test_one_event_that_cannot_fit_by_itself_is_an_error_until_more_is_negotiated() -> None:
    """T10: with `{seq_no, event_bytes, max_batch_bytes}`; what lies before it is given first, the cursor goes on."""
    hub = StreamsHub()
    hub.send(event("small"), event("large", extensions={"pad": "x" * 500}), event("after"))
    hub.agree(limits={"max_event_bytes": 256, "max_batch_bytes": 400})
    batch = hub.next()
    assert ids(batch) == ["small"]
    with pytest.raises(BatchTooLarge) as refusal:
        hub.next(batch.next_cursor)
    details = refusal.value.details
    assert refusal.value.status == 413
    assert set(details) == {"seq_no", "event_bytes", "max_batch_bytes"}
    assert (details["seq_no"], details["max_batch_bytes"]) == (2, 400)
    hub.agree(limits={"max_event_bytes": 256, "max_batch_bytes": details["event_bytes"] - 1})
    with pytest.raises(BatchTooLarge):
        hub.next(batch.next_cursor)
    hub.agree(limits={"max_event_bytes": 256, "max_batch_bytes": details["event_bytes"]})
    larger = hub.next(batch.next_cursor)
    assert ids(larger) == ["large"], "with what the error named, it fits"
    assert ids(hub.next(larger.next_cursor)) == ["after"]


def test_a_gap_that_does_not_fit_is_told_as_any_event() -> None:
    """T9, T10."""
    hub, long = StreamsHub(), "s" * 100
    hub.send(event("a"), event("b"), event("c"), stream=long)
    hub.prune(long, 2)
    hub.agree(limits={"max_event_bytes": 256, "max_batch_bytes": 256})
    with pytest.raises(BatchTooLarge) as refusal:
        hub.next(stream=long)
    assert refusal.value.details["seq_no"] == 2
    hub.agree(limits={"max_event_bytes": 256, "max_batch_bytes": refusal.value.details["event_bytes"]})
    assert ids(hub.next(stream=long)) == ["gap-2"]


def test_a_cursor_can_be_resumed_from_exactly_when_it_can_be_polled() -> None:
    """T6, T7, T9: as the WebSocket's subscribe does."""
    hub = hub_with(10)
    hub.send(event("x"), stream="s2")
    cursor = hub.next(None, 3).next_cursor
    resume = hub.poll.resume
    assert resume("default", RUNTIME, STREAM, cursor) == 3
    for scope in (("t2", RUNTIME, STREAM), ("default", "r2", STREAM), ("default", RUNTIME, "s2")):
        with pytest.raises(InvalidCursor):
            resume(*scope, cursor)
    hub.prune(STREAM, 3)
    assert resume("default", RUNTIME, STREAM, cursor) == 3
    hub.prune(STREAM, 4)
    with pytest.raises(CursorExpired):
        resume("default", RUNTIME, STREAM, cursor)
    with pytest.raises(StreamDegraded):
        resume("default", RUNTIME, STREAM, cursor)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.lists(st.integers(1, 7), min_size=1), st.data())
@settings(max_examples=50)
def test_however_it_is_written_and_read_every_event_comes_once_and_in_order(
    written: list[int], read: list[int], data: st.DataObject
) -> None:
    """T3, T6: for a consumer that keeps up with pruning and polls in any sizes."""
    hub, count, seen, cursor = StreamsHub(), 0, list[int](), None
    for size in written:
        hub.send(*(event(f"e{count + n}") for n in range(size)))
        count += size
        for wanted in read:
            batch = hub.next(cursor, wanted)
            seen, cursor = [*seen, *seqs(batch)], batch.next_cursor
            assert len(batch.events) == min(wanted, len(batch.events) + count - (seen or [0])[-1])
        if data.draw(st.booleans()):
            hub.prune(STREAM, data.draw(st.integers(0, (seen or [0])[-1])))
        if data.draw(st.booleans()):
            hub.restart()
    while (batch := hub.next(cursor)).events:
        seen, cursor = [*seen, *seqs(batch)], batch.next_cursor
    assert seen == list(range(1, count + 1))


def test_no_error_of_a_poll_holds_a_payload_value() -> None:
    """T12, P2."""
    hub = StreamsHub()
    hub.send(*(event(f"e{n}", payload={"pad": "canary" * 99}) for n in range(4)))
    cursor = hub.next(None, 1).next_cursor
    hub.agree(limits={"max_event_bytes": 256, "max_batch_bytes": 300})
    refusals: list[SdkError] = []

    def refused(sent: str | None, wanted: int | None = None) -> None:
        with pytest.raises(SdkError) as refusal:
            hub.next(sent, wanted)
        refusals.append(refusal.value)

    refused(cursor)
    refused(None, 0)
    refused(None, 999)
    refused("canary")
    hub.prune(STREAM, 3)
    refused(cursor)
    refused(cursor)
    assert len({type(error) for error in refusals}) == len(refusals)
    assert "canary" not in json.dumps([error.body() for error in refusals])
