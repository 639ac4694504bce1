"""The hub's delivery ledger: what it stores, what it costs, and what an operator sees of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from millrace.delivery.adapters.dynamodb import keys
from millrace.delivery.adapters.dynamodb import ledger as drain_ledger
from millrace.delivery.adapters.dynamodb.agenda import DynamoAgenda
from millrace.delivery.application.dispatch import Dispatch
from millrace.delivery.domain.outcomes import Answer, held
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.states import Outcome, Status, settle
from millrace.delivery.domain.targets import Target
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import Ledger
from tests.support.aws_tables import client_of
from tests.support.hub_world import JOURNAL, TENANT, A, HubWorld, on_dynamodb, on_moto
from tests.support.worlds import Scripted, event, results

HOUR = 3_600_000


@pytest.fixture(params=["moto", "embedded", "lean"])
def world(request: pytest.FixtureRequest) -> Iterator[HubWorld]:
    if request.param == "moto":
        with on_moto() as made:
            yield made
    else:
        yield on_dynamodb(client_of(request), Threads())


class Counted:
    """A client that counts its calls."""

    def __init__(self, client: Any) -> None:
        self.client, self.calls = client, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.client, name)

        def counted(**arguments: Any) -> Any:
            self.calls[name] += 1
            return call(**arguments)

        return counted


def counting(world: HubWorld) -> Counter[str]:
    """Counts what the world asks of its table from here on."""
    counted = Counted(world.hub.runs.client)
    runs = replace(world.hub.runs, client=counted)
    world.hub = replace(world.hub, runs=runs, positions=replace(world.hub.positions, runs=runs))
    return counted.calls


def stored(world: HubWorld, partition: str) -> list[str]:
    runs = world.hub.runs
    return [item["s"]["S"] for item in runs.items(runs.between(partition, " ", "~"))]


def world_drain(world: HubWorld, receiver: Scripted) -> None:
    """With the ledger as it stands."""
    Dispatch(world.hub, world.states, world.clock, lambda: 0.0)(A, receiver)


def all_are(status: str, picks: Sequence[Pick]) -> Answer:
    return results(**{pick.event_id: status for pick in picks})


def ids(first: int, last: int) -> list[str]:
    return [f"e{number:04}" for number in range(first, last + 1)]


def test_a_delivered_run_is_one_row_and_is_still_answered_event_by_event(world: HubWorld) -> None:
    """D4"""
    world.capture(*ids(1, 400))
    world.drain(Scripted())
    assert stored(world, keys.rows(A.id)) == [keys.row(JOURNAL.name, 400)]
    assert stored(world, keys.pointers(A.id)) == []
    found = world.deliveries.find("a", None, limit=1000)
    assert [one.event_id for one in found] == ids(1, 400)
    assert {one.delivery.status for one in found} == {Status.SUCCESS}
    assert world.delivery("e0123") == found[122].delivery


def test_a_batch_of_any_size_is_written_down_in_two_writes(world: HubWorld) -> None:
    """D9: one row and the cursor."""
    world.capture(*ids(1, 300))
    calls = counting(world)
    world.drain(Scripted())
    assert calls["put_item"] + calls["update_item"] + calls["transact_write_items"] + calls["delete_item"] == 2


def test_a_batch_that_fails_as_a_whole_is_one_row_again(world: HubWorld) -> None:
    world.capture(*ids(1, 300))
    world.drain(Scripted([held("answered 500")]))
    assert stored(world, keys.rows(A.id)) == [keys.row(JOURNAL.name, 300)]
    assert world.deliveries.find("a", Status.TRANSIENT, limit=1)[0].delivery.attempts == 1
    world.clock.ahead(HOUR)
    world.drain(Scripted([lambda picks: results(**{p.event_id: "success" for p in picks[:150]})]))
    assert Counter(world.statuses().values()) == {"success": 100}, "a page of them"
    assert len(stored(world, keys.rows(A.id))) == 2, "cut where it changed"
    counts = world.deliveries.counts("a")  # type: ignore[attr-defined]
    assert counts == {Status.TRANSIENT: 150}


@pytest.mark.slow
@pytest.mark.parametrize("kept", [100, 2000])
def test_selection_costs_what_is_selected_not_what_is_stored(kept: int) -> None:
    """D9"""
    with on_moto() as world:
        for start in range(1, kept, 50):
            world.capture(*ids(start, start + 49))
            world.drain(
                Scripted([lambda picks: results(**{p.event_id: "rejected" for p in picks})] * (start % 100 == 1))
            )
        world.capture("new")
        calls = counting(world)
        world.drain(Scripted())
        assert sum(calls.values()) <= 14, calls


def test_positions_count_what_was_delivered_once(world: HubWorld) -> None:
    world.capture(*ids(1, 6))
    world.drain(Scripted([results(e0001="success", e0002="rejected", e0003="duplicate", e0004="pending")]))
    world.clock.ahead(HOUR)
    world.drain(Scripted())
    world.clock.ahead(HOUR)
    world.drain(Scripted())
    [(ledger, position)] = world.hub.positions.all(A)
    assert (ledger, position.at, position.delivered) == (JOURNAL.name, 6, 6)


def test_a_pruned_event_is_recorded_as_given_up_and_never_passed_over_in_silence(world: HubWorld) -> None:
    """C8"""
    world.capture(*ids(1, 6))
    world.committed.prune(2, 3)
    receiver = Scripted()
    assert world.drain(receiver).complete
    assert receiver.sent == ["e0001", "e0004", "e0005", "e0006"]
    gone = world.deliveries.find("a", Status.TERMINAL_FAILED)
    assert [(one.event_id, one.event_type, one.delivery.error) for one in gone] == [
        ("e0002", "", "pruned"),
        ("e0003", "", "pruned"),
    ]


def test_an_event_that_is_pruned_while_it_waits_is_given_up(world: HubWorld) -> None:
    world.capture("e1", "e2")
    world.drain(Scripted([results(e1="rejected", e2="success")]))
    world.committed.prune(1)
    world.clock.ahead(HOUR)
    world.drain(Scripted())
    assert world.statuses() == {"e1": "terminal_failed", "e2": "success"}


def test_a_target_that_is_new_to_a_ledger_begins_with_what_is_retained(world: HubWorld) -> None:
    world.capture(*ids(1, 4))
    world.committed.prune(1, 2)
    world.committed.state.raise_floor(JOURNAL, 3)
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == ["e0003", "e0004"]
    assert world.statuses() == {"e0003": "success", "e0004": "success"}


def test_deliveries_are_listed_page_by_page_in_each_status(world: HubWorld) -> None:
    world.capture(*ids(1, 9))
    world.drain(
        Scripted(
            [results(**{id_: "terminal_failed" if number % 2 else "success" for number, id_ in enumerate(ids(1, 9))})]
        )
    )
    for status, expected in ((None, 9), (Status.TERMINAL_FAILED, 4), (Status.SUCCESS, 5), (Status.PENDING, 0)):
        listed, after = list[str](), ""
        while True:
            page = world.deliveries.page("a", status, after, 2)  # type: ignore[attr-defined]
            listed += [one.event_id for one in page.found]
            if page.after is None:
                break
            after = page.after
        assert len(listed) == len(set(listed)) == expected
    for status in (None, Status.TERMINAL_FAILED):
        for place in ("nonsense", "\x7f%#5", f"{'d' * 2000}%#5", "%#", "x%#²"):
            with pytest.raises(BadRequest):
                world.deliveries.page("a", status, place, 2)  # type: ignore[attr-defined]


def test_a_retry_by_hand_cuts_one_event_out_of_its_run(world: HubWorld) -> None:
    world.capture(*ids(1, 5))
    world.drain(Scripted([results(**dict.fromkeys(ids(1, 5), "terminal_failed"))]))
    found = world.deliveries.get("a", "e0003")
    assert found is not None
    again = replace(found.delivery, status=Status.PENDING, next_ms=world.clock())
    assert world.deliveries.replace(replace(found, target_id=A.id), again)
    assert not world.deliveries.replace(replace(found, target_id=A.id), again), "it has changed since"
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == ["e0003"]
    assert world.statuses() == {**dict.fromkeys(ids(1, 5), "terminal_failed"), "e0003": "success"}


def test_events_that_will_be_tried_again_hold_retention(world: HubWorld) -> None:
    """C8"""
    world.capture(*ids(1, 6))
    world.drain(
        Scripted([results(**{**dict.fromkeys(ids(1, 6), "success"), "e0004": "rejected", "e0002": "terminal_failed"})])
    )
    assert world.hub.positions.lowest_open(A, JOURNAL.name) == 4
    world.clock.ahead(HOUR)
    world.drain(Scripted())
    assert world.hub.positions.lowest_open(A, JOURNAL.name) is None


def test_each_ledger_has_its_own_order_and_a_due_one_is_visited_without_being_rung(world: HubWorld) -> None:
    """D6"""
    other = Ledger.of("delivery", TENANT, "other")
    world.capture("e1", "e2")
    there = replace(world.committed, ledger=other, head=0)
    there.commit([("o1", event("o1")), ("o2", event("o2"))])
    receiver = Scripted([results(e1="transient", e2="success")])
    world.again(JOURNAL.name, other.name)
    world_drain(world, receiver)
    assert receiver.offered == [["e1", "e2"], ["o1", "o2"]], "a transient event holds its own ledger only"
    agenda = DynamoAgenda(world.hub.runs)
    assert not agenda.due(A, world.clock(), 1)
    world.clock.ahead(HOUR)
    assert agenda.due(A, world.clock(), 1)
    world.again()
    world_drain(world, receiver)
    assert receiver.offered[2:] == [["e1"]]
    assert not agenda.due(A, world.clock() + HOUR, 1)


def test_a_ledger_the_target_hears_of_no_more_is_not_visited(world: HubWorld) -> None:
    """D6"""
    world.capture("e1", "e2")
    world.drain(Scripted([results(e1="rejected", e2="success")]))
    world.clock.ahead(HOUR)
    ledger, receiver = world.again(JOURNAL.name), Scripted()
    ledger.hears = lambda _: False
    world_drain(world, receiver)
    assert (receiver.sent, ledger.unfinished) == ([], set())
    assert not DynamoAgenda(world.hub.runs).due(A, world.clock(), 1)


def test_more_visits_than_are_read_at_once_are_all_made(world: HubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_ledger, "VISITS", 2)
    DynamoAgenda(world.hub.runs).note(A, [f"delivery#{TENANT}#{n}" for n in range(5)])
    assert list(world.again(JOURNAL.name).ledgers(A, world.clock())) == [
        *(f"delivery#{TENANT}#{n}" for n in range(2)),
        JOURNAL.name,
        *(f"delivery#{TENANT}#{n}" for n in range(2, 5)),
    ]
    assert not DynamoAgenda(world.hub.runs).due(A, world.clock(), 1)


def test_a_target_that_begins_in_an_empty_ledger_gets_its_first_event(world: HubWorld) -> None:
    world.know(A, start_now=True)
    world.capture("e1")
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == ["e1"]
    assert world.statuses() == {"e1": "success"}


def test_many_that_wait_are_selected_in_their_turn(world: HubWorld) -> None:
    world.capture(*ids(1, 90))
    world.drain(
        Scripted([results(**{id_: "rejected" if number % 2 else "success" for number, id_ in enumerate(ids(1, 90))})])
    )
    world.clock.ahead(HOUR)
    receiver = Scripted(most_events=40)
    world.drain(receiver)
    assert sorted(receiver.sent) == ids(1, 90)[1::2]
    assert {len(batch) for batch in receiver.offered} <= {40, 5}


def test_what_a_drain_was_woken_for_and_did_not_reach_is_left_unfinished(world: HubWorld) -> None:
    world.capture("e1", "e2", "e3")
    ledger = world.again(JOURNAL.name)
    receiver = Scripted(most_events=1)
    ledger.may_go_on = lambda: not receiver.offered
    Dispatch(ledger, world.states, world.clock, lambda: 0.0, may_go_on=ledger.may_go_on)(A, receiver)
    assert (receiver.sent, ledger.unfinished) == (["e1"], {JOURNAL.name})
    ledger.may_go_on = lambda: True
    Dispatch(ledger, world.states, world.clock, lambda: 0.0)(A, receiver)
    assert (receiver.sent, ledger.unfinished) == (["e1", "e2", "e3"], set())


def test_much_that_is_not_wanted_is_looked_at_once(world: HubWorld) -> None:
    picky = Target(A.id, "stub", prefixes=frozenset({"order."}))
    world.capture(*ids(1, 1100))
    world.capture("o1", kind="order.paid")
    receiver = Scripted()
    world.drain(receiver, picky)
    assert receiver.sent == ["o1"]
    assert world.hub.positions.stored(picky, JOURNAL.name) == 1101
    calls = counting(world)
    world.drain(receiver, picky)
    assert calls["put_item"] + calls["update_item"] == 0


def test_two_drains_at_once_leave_each_event_one_delivery(world: HubWorld) -> None:
    """A queue that hands out a message twice makes two drains of one target."""
    world.capture(*ids(1, 8))
    first, second = world.again(JOURNAL.name), world.again(JOURNAL.name)
    one = first.select(A, JOURNAL.name, world.clock(), 5, 10**6)
    two = second.select(A, JOURNAL.name, world.clock(), 8, 10**6)
    for ledger, chosen in ((second, two), (first, one)):
        news = {pick.position: settle(None, Outcome(Status.SUCCESS), 5, Schedule(), 0) for pick in chosen.picks}
        ledger.record(A, JOURNAL.name, news, chosen.through)
    assert [found.event_id for found in world.deliveries.find("a", None)] == ids(1, 8)
    [(_, position)] = world.hub.positions.all(A)
    assert (position.at, position.delivered) == (8, 8)
