"""The counted figures we hold, on the embedded stack. Nothing here is timed; `make bench` measures the rest."""

from __future__ import annotations

import pytest

from millrace.ledger.domain.canonical import canonical
from tests.bench.events import CONTENT_BYTES, KINDS, drafts, items
from tests.bench.live_costs import BYSTANDERS, EACH_ALL, EACH_ONE, ONE, SPREADS, fan_out, messages, subscribing
from tests.bench.overhead import overhead, undeflated_units
from tests.bench.rig import Rig, rig_at
from tests.bench.scenarios import duplicate, fresh, old_head
from tests.bench.session_costs import PAGE, SESSIONS, publishing, reader, stored, transcripts
from tests.bench.session_events import mixed
from tests.bench.sizes import item_size
from tests.bench.stream_costs import ACROSS_BUCKETS, FEW, PER_PAGE, emission, markers, polls, transition
from tests.bench.stream_events import stream_drafts
from tests.bench.sync import ROUND_TRIPS, Stored, cycles


@pytest.fixture
def rig(endpoint: str) -> Rig:
    return rig_at(endpoint)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_events_of_the_bench_are_half_a_kilobyte(kind: str) -> None:
    assert {len(canonical(item["event"])) for item in items(kind, 100, seed=0)} == {CONTENT_BYTES}


def test_one_event_alone_costs_two_units_and_two_calls(rig: Rig, kind: str) -> None:
    measured = fresh(rig, kind, 1)
    assert (measured.units, measured.calls, measured.rounds) == (2, 2, 2)
    assert measured.counts.calls_to("state", "index") == 0


def test_25_events_cost_at_most_1_6_units_each_and_two_calls(rig: Rig, kind: str) -> None:
    measured = fresh(rig, kind, 25)
    assert measured.units <= 1.6
    assert measured.calls == 2


def test_25_events_that_cannot_be_deflated_keep_to_the_figure_too() -> None:
    assert undeflated_units(25) <= 1.6


def test_a_page_of_25_adds_at_most_100_bytes_to_an_event() -> None:
    assert overhead(25) <= 100


def test_a_duplicate_costs_one_unit_one_claim_read_and_one_page_read(rig: Rig, kind: str) -> None:
    measured = duplicate(rig, kind, 1)
    assert measured.units == 1
    assert measured.counts.calls == {
        ("claims", "PutItem"): 1,
        ("claims", "BatchGetItem"): 1,
        ("log", "Query"): 1,
    }


def test_a_batch_of_duplicates_costs_one_unit_each_and_the_same_two_reads(rig: Rig, kind: str) -> None:
    measured = duplicate(rig, kind, 25)
    assert measured.units == 1
    assert measured.counts.calls == {
        ("claims", "BatchExecuteStatement"): 1,
        ("claims", "BatchGetItem"): 1,
        ("log", "Query"): 1,
    }


def test_an_old_head_is_read_forward_alongside_the_claim(rig: Rig, kind: str) -> None:
    measured = old_head(rig, kind, 1)
    assert (measured.units, measured.calls, measured.rounds) == (2, 3, 2)


@pytest.mark.parametrize("per_page", [100, 5])
def test_a_sync_page_takes_at_most_two_round_trips_after_the_head_is_known(rig: Rig, per_page: int) -> None:
    reads = cycles(rig, Stored("2,200 events", drafts("realistic", 2_200, 1), per_page))
    assert {asked: read.events for asked, read in reads.items()} == {
        "the whole project": 2_200,
        "one partition of ten, indexed": 220,
        "one partition of ten, half indexed": 220,
    }
    assert all(read.rounds_after_head <= ROUND_TRIPS for read in reads.values()), reads


@pytest.mark.parametrize("spread", SPREADS)
def test_a_fan_out_costs_the_same_beside_a_thousand_connections_that_listen_elsewhere(rig: Rig, spread: str) -> None:
    assert fan_out(rig, spread, 10, 25, BYSTANDERS).cost == fan_out(rig, spread, 10, 25).cost


@pytest.mark.parametrize(("spread", "calls", "posts"), [(ONE, 5, 2_500), (EACH_ONE, 14, 250), (EACH_ALL, 14, 2_500)])
def test_a_fan_out_asks_once_per_partition_and_writes_one_unit(rig: Rig, spread: str, calls: int, posts: int) -> None:
    """Cursor, log, the whole project's subscriptions, those of each partition; then the cursor moves."""
    run = fan_out(rig, spread, 100, 25)
    assert (run.calls, run.counts.rounds, run.posts) == (calls, 4, posts)
    assert run.counts.writes == {"state": 1}


def test_a_fan_out_reads_subscriptions_by_their_size(rig: Rig) -> None:
    few, many = (fan_out(rig, ONE, subscribers, 1).counts.read_units("connections") for subscribers in (1, 100))
    assert few == 2
    assert many <= 100 * 0.1


def test_a_message_costs_two_writes_whether_it_is_the_first_of_a_second_or_not(rig: Rig) -> None:
    counted = messages(rig)
    for name in ("heartbeat, same second", "heartbeat, first message of a second"):
        assert counted[name].calls == {("connections", "UpdateItem"): 2}
        assert counted[name].writes == {"connections": 2}
    submit = counted["submit_events, one event, warm"]
    assert (submit.calls_to("connections"), sum(submit.calls.values())) == (2, 4)


@pytest.mark.parametrize("partitions", [1, 10])
def test_subscribing_writes_a_row_per_partition_and_one_that_lists_them(rig: Rig, partitions: int) -> None:
    counts = subscribing(rig, partitions)
    assert counts.calls_to("connections") == sum(counts.calls.values()) == 3
    assert counts.writes == {"connections": partitions + 1}


def test_a_realtime_event_alone_costs_two_units_and_two_calls(rig: Rig) -> None:
    measured = publishing(rig, 1)
    assert (measured.units, measured.calls, measured.counts.rounds) == (2, 2, 2)
    assert measured.counts.calls_to("state") == 0


def test_25_realtime_events_of_one_session_take_two_calls(rig: Rig) -> None:
    measured = publishing(rig, 25)
    assert (measured.calls, measured.counts.rounds) == (2, 2)
    assert measured.units <= 1.6 * 25


def test_sessions_of_one_publish_do_not_wait_for_each_other(rig: Rig) -> None:
    measured = publishing(rig, 25, SESSIONS)
    assert (measured.units, measured.calls, measured.counts.rounds) == (50, 50, 2)


@pytest.mark.parametrize("per_publish", [100, 5])
def test_a_replay_page_takes_at_most_two_round_trips_after_the_head_is_known(rig: Rig, per_publish: int) -> None:
    session = stored(rig, mixed(2_200, 1, ["replayed"]), per_publish)
    read = reader(rig, session).by_sequence()
    assert (read.events, read.pages) == (2_200, 5)
    assert read.rounds_after_head <= ROUND_TRIPS


def test_a_replay_page_in_time_order_costs_the_same_however_long_the_session_is(rig: Rig) -> None:
    """Beside its own 500 events: four rows at each end of the index, and a tail of less than a bucket."""
    pages = []
    for sessions, events in enumerate((2_100, 6_200)):
        session = stored(rig, mixed(events, sessions, [f"in-time-{events}"]), 100)
        pages.append(reader(rig, session).in_time_order())
    for page in pages:
        assert page.events == PAGE
        assert page.rounds_after_head <= 4
        assert page.counts.read_units("log", "state", "index") <= 50


def test_a_transcript_is_read_from_its_projection(rig: Rig) -> None:
    first, again, more, _ = transcripts(rig, 50).values()
    assert first.writes["state"] > 0
    assert not again.writes
    assert not more.writes
    assert again.reads["log"] < first.reads["log"]


def test_the_stream_events_of_the_bench_are_half_a_kilobyte(kind: str) -> None:
    assert {len(draft.body) for draft in stream_drafts(kind, 100, seed=0)} == {CONTENT_BYTES}


@pytest.mark.parametrize("per_page", PER_PAGE)
def test_a_poll_takes_two_round_trips_after_the_cursor_is_verified(rig: Rig, per_page: int) -> None:
    """A page of 100 events takes five units to read: few events are not looked for in many pages, and at the head
    there is only the runtime, the stream's marks, the subscription's, and a look behind the last page."""
    counted = polls(rig, per_page, ACROSS_BUCKETS)
    assert {name: cost.rounds for name, (_, cost) in counted.items()} == dict.fromkeys(counted, ROUND_TRIPS)
    assert max(cost.calls for _, cost in counted.values()) <= 5
    assert not any(cost.writes for _, cost in counted.values())
    _, few = counted[f"with a cursor, max {FEW}"]
    assert few.counts.reads["log"] <= 6
    _, empty = counted["at the head"]
    assert (empty.calls, empty.reads) == (4, 4)


def test_a_stream_event_costs_what_a_commit_does_and_two_reads_of_its_session(rig: Rig, kind: str) -> None:
    """The client's own negotiation and the runtime's are read at once."""
    for events in (1, 25):
        cost, bare = emission(rig, events, kind), fresh(rig, kind, events)
        assert (cost.calls, cost.rounds, cost.reads) == (bare.calls + 2, bare.rounds + 1, 2)
        assert cost.writes <= bare.units * events


def test_a_duplicate_stream_event_costs_one_unit(rig: Rig) -> None:
    for events in (1, 25):
        cost = emission(rig, events, again=True)
        assert (cost.writes, cost.calls) == (events, 5)


def test_a_delivery_transition_writes_its_row_twice_beside_the_commit(rig: Rig) -> None:
    cost = transition(rig, 1)
    assert (cost.writes, cost.reads, cost.calls, cost.rounds) == (4, 3, 7, 6)
    assert cost.counts.writes == {"state": 2, "claims": 1, "log": 1}


def test_transitions_of_one_batch_do_not_wait_for_each_other(rig: Rig) -> None:
    cost = transition(rig, 25)
    assert (cost.calls, cost.rounds) == (3 * 25 + 4, 6)
    assert cost.counts.calls_to("claims", "log") == 2


def test_a_transition_sent_again_writes_no_row(rig: Rig) -> None:
    cost = transition(rig, 1, again=True)
    assert cost.counts.writes == {"claims": 1}


def test_a_marker_change_costs_six_units_and_a_refused_one_none(rig: Rig) -> None:
    counted = markers(rig)
    stale = counted.pop("move with a stale revision")
    *changes, _ = counted.values()
    assert [(change.writes, change.calls) for change in changes] == [(6, 8)] * 4
    assert (stale.writes, stale.calls) == (0, 2)


def test_the_units_reported_for_writes_follow_the_size_rules(rig: Rig) -> None:
    for size in (1, 2, 3, 25, 100):
        fresh(rig, "random", size)
    for state in ("queued", "in_flight", "sent"):
        transition(rig, 3, (state,))
    assert rig.tally.checked >= 10
    assert rig.tally.differing == []


def test_the_size_rules_count_names_text_bytes_and_pairs_of_digits() -> None:
    item = {"ab": {"S": "é"}, "c": {"B": b"123"}, "d": {"N": "12345"}, "e": {"N": "0"}, "f": {"N": "1200"}}
    assert item_size(item) == (2 + 2) + (1 + 3) + (1 + 4) + (1 + 1) + (1 + 2)
    assert item_size({"l": {"L": [{"S": "ab"}, {"N": "1"}]}}) == 1 + 3 + (1 + 2) + (1 + 2)
    assert item_size({"m": {"M": {"ab": {"S": "cd"}, "e": {"B": b"f"}}}}) == 1 + 3 + (1 + 2 + 2) + (1 + 1 + 1)
