"""T11: `status()` is right at the position it names, from stored projections or folded anew, pruned or not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.ledger.domain.errors import Forbidden, Unavailable
from millrace.streams.application.runtime_status import STORE_AFTER
from millrace.streams.domain.errors import InvalidArgument
from tests.unit.streams.hub import RUNTIME, STREAM, StreamsHub, event


def status(hub: StreamsHub, **how: Any) -> dict[str, Any]:
    """Of the one stream that there is."""
    (found,) = hub.status(hub.identity(), RUNTIME, **how)["streams"]
    return dict(found)


def fill(hub: StreamsHub, count: int, first: int = 1, stream: str = STREAM) -> None:
    for at in range(first, first + count, 100):
        hub.send(*(event(f"e{n}") for n in range(at, min(at + 100, first + count))), stream=stream)


def stored_through(hub: StreamsHub) -> tuple[int, int | None]:
    projection = hub.projections.load(hub.ledger())
    return projection.through, projection.state.get("from_seq_no")


def test_a_runtime_without_events_has_no_streams() -> None:
    """T11: negotiated or not."""
    for negotiated in (True, False):
        hub = StreamsHub(negotiated=negotiated)
        assert hub.status(hub.identity(), RUNTIME) == {
            "runtime_id": RUNTIME,
            "taken_ts_ms": hub.clock.ms,
            "streams": [],
        }


def test_each_stream_is_told_with_the_position_it_was_taken_at() -> None:
    """T11."""
    hub = StreamsHub()
    hub.agree("r2")
    fill(hub, 3)
    fill(hub, 2, stream="a")
    hub.send(event("x"), runtime="r2")
    hub.send(event("late", severity="error"))
    a, s = hub.status(hub.identity(), RUNTIME)["streams"]
    assert (a["stream_id"], a["seq_no"], s["stream_id"], s["seq_no"]) == ("a", 2, "s", 4)
    assert s == {
        "stream_id": "s",
        "seq_no": 4,
        "floor_seq_no": 1,
        "from_seq_no": 1,
        "complete": True,
        "projection": {
            "events": 4,
            "by_type": {"RuntimeStateChanged": 4},
            "by_severity": {"info": 3, "error": 1},
            "deliveries": {},
            "interfaces": {},
            "runtime_state": {"event_id": "late", "seq_no": 4, "ts_ms": 1_771_236_000_000, "state": "up"},
            "last_event": {
                "event_id": "late",
                "seq_no": 4,
                "ts_ms": 1_771_236_000_000,
                "event_type": "RuntimeStateChanged",
            },
        },
    }


def test_the_answer_follows_the_head_and_is_stored_now_and_then() -> None:
    """T11: what is stored saves reading, and never shows."""
    hub = StreamsHub()
    fill(hub, STORE_AFTER - 1)
    assert status(hub)["seq_no"] == STORE_AFTER - 1
    assert stored_through(hub) == (0, None)
    fill(hub, 1, STORE_AFTER)
    assert status(hub)["projection"]["events"] == STORE_AFTER
    assert stored_through(hub) == (STORE_AFTER, 1)
    fill(hub, 5, STORE_AFTER + 1)
    for _ in range(2):
        assert status(hub)["projection"]["events"] == STORE_AFTER + 5
    assert stored_through(hub) == (STORE_AFTER, 1)


def test_what_was_folded_before_it_was_pruned_still_counts() -> None:
    """T11."""
    hub = StreamsHub()
    fill(hub, 60)
    status(hub)
    hub.prune(STREAM, 55)
    found = status(hub)
    assert (found["projection"]["events"], found["complete"]) == (60, True)
    assert (found["floor_seq_no"], found["from_seq_no"]) == (56, 1)


@pytest.mark.parametrize("raised", [True, False])
def test_what_was_pruned_before_it_was_folded_is_missing_and_the_answer_says_so(raised: bool) -> None:
    """T11: whether or not the floor has been raised yet."""
    hub = StreamsHub()
    fill(hub, 60)
    hub.prune(STREAM, 20)
    if not raised:
        hub.state.floors.clear()
    found = status(hub)
    assert (found["projection"]["events"], found["seq_no"]) == (40, 60)
    assert (found["from_seq_no"], found["complete"]) == (21, False)
    assert found["floor_seq_no"] == (21 if raised else 1)


def test_a_stream_whose_events_are_all_gone_is_told_as_empty_from_there() -> None:
    """T11."""
    hub = StreamsHub()
    fill(hub, 10)
    hub.prune(STREAM, 10)
    found = status(hub)
    assert (found["projection"]["events"], found["seq_no"], found["from_seq_no"]) == (0, 10, 11)


def test_nothing_from_before_a_loss_is_told_after_it() -> None:
    """T11: what the answer covers begins where it says, also for what came once and long ago."""
    hub = StreamsHub()
    hub.send(event("a", "ErrorRaised"), event("b", "HealthSnapshot"), event("c"), event("d", "x.y.z"))
    page = hub.log.pages[hub.ledger().name][1]
    hub.log.replace(hub.ledger(), page.emptied([3]))
    found = status(hub)
    assert (found["from_seq_no"], found["seq_no"]) == (4, 4)
    kept = {"events", "by_type", "by_severity", "deliveries", "interfaces", "last_event"}
    assert found["projection"].keys() == kept


def test_a_rebuild_folds_the_whole_log_and_mends_what_was_stored() -> None:
    """T11."""
    hub = StreamsHub()
    fill(hub, 60)
    status(hub)
    wrong = hub.projections.load(hub.ledger())
    hub.projections.projections[hub.ledger().name] = type(wrong)(wrong.through, {**wrong.state, "events": 999})
    assert status(hub)["projection"]["events"] == 999
    assert status(hub, rebuild=True)["projection"]["events"] == 60
    assert status(hub)["projection"]["events"] == 60


def test_a_rebuild_never_replaces_what_was_stored_by_what_knows_less() -> None:
    """T11: after pruning, only what is stored knows the beginning, however much has come since."""
    hub = StreamsHub()
    fill(hub, 60)
    status(hub)
    hub.prune(STREAM, 30)
    assert status(hub, rebuild=True)["from_seq_no"] == 31
    assert (status(hub)["from_seq_no"], status(hub)["projection"]["events"]) == (1, 60)
    fill(hub, STORE_AFTER + 10, 61)
    assert status(hub, rebuild=True)["from_seq_no"] == 31
    assert (status(hub)["from_seq_no"], status(hub)["projection"]["events"]) == (1, 120)


def test_a_projection_that_fell_behind_the_floor_is_replaced() -> None:
    """T11: it cannot be brought up to date; what can be known is stored in its place."""
    hub = StreamsHub()
    fill(hub, 60)
    status(hub)
    fill(hub, 100, 61)
    hub.prune(STREAM, 100)
    assert status(hub)["from_seq_no"] == 101
    assert stored_through(hub) == (160, 101)


def test_a_status_is_a_consumers_and_a_rebuild_an_operators() -> None:
    """T12."""
    hub = StreamsHub()
    fill(hub, 1)
    reader = hub.identity(roles=["consumer"], partitions=["runtime:r1"])
    assert hub.status(reader, RUNTIME)["streams"]
    with pytest.raises(Forbidden):
        hub.status(reader, RUNTIME, rebuild=True)
    with pytest.raises(Forbidden):
        hub.status(hub.identity(roles=["producer"]), RUNTIME)
    with pytest.raises(Forbidden):
        hub.status(reader, "r2")
    with pytest.raises(InvalidArgument):
        hub.status(hub.identity(), "")


def test_a_page_that_cannot_be_read_is_said_and_not_left_out() -> None:
    """T8, T11: a status of a part, taken for the whole, would be wrong."""
    hub = StreamsHub()
    fill(hub, 300)
    del hub.log.pages[hub.ledger().name][101]
    hub.restart()
    with pytest.raises(Unavailable):
        status(hub)


def test_a_stream_longer_than_a_bucket_is_folded_to_its_end() -> None:
    """T11."""
    hub = StreamsHub()
    fill(hub, 2_300)
    assert (status(hub)["seq_no"], status(hub)["projection"]["events"]) == (2_300, 2_300)


kinds = st.sampled_from(["RuntimeStateChanged", "HealthSnapshot", "ErrorRaised", "InterfaceStateChanged", "a.b.c"])


@given(st.lists(st.tuples(kinds, st.integers(1, 40), st.booleans(), st.booleans()), min_size=1, max_size=8))
@settings(max_examples=40)
def test_going_on_from_what_is_stored_gives_the_same_as_folding_it_all(written: list[Any]) -> None:
    """T11."""
    hub, count = StreamsHub(), 0
    for kind, size, asked, restarted in written:
        hub.send(*(event(f"e{count + n}", kind, payload={"interface": f"i{n % 3}", "to": n}) for n in range(size)))
        count += size
        if asked:
            status(hub)
        if restarted:
            hub.restart()
    found = status(hub)
    hub.projections.projections.clear()
    assert found == status(hub)
    assert (found["seq_no"], found["projection"]["events"]) == (count, count)
