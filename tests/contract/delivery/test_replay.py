"""A range of events that a target gets again: what goes out, what stays known, and what a repeated step leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from millrace.delivery.adapters.dynamodb.replay import DynamoReplays
from millrace.delivery.domain.outcomes import held
from millrace.delivery.domain.replay import WantedRange
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.ports.targets import ReplayedSome
from millrace.ledger.adapters.threads import Threads
from tests.support.aws_tables import client_of
from tests.support.hub_world import JOURNAL, TENANT, A, HubWorld, on_dynamodb, on_moto
from tests.support.worlds import Scripted, results

MINE = replace(A, id=f"{TENANT}#a")


@pytest.fixture(params=["moto", "embedded", "lean"])
def world(request: pytest.FixtureRequest) -> Iterator[HubWorld]:
    if request.param == "moto":
        with on_moto() as made:
            yield made
    else:
        yield on_dynamodb(client_of(request), Threads())


def ids(first: int, last: int) -> list[str]:
    return [f"e{number:04}" for number in range(first, last + 1)]


def deliver(world: HubWorld, *event_ids: str) -> None:
    world.capture(*event_ids)
    world.drain(Scripted())


def step(
    world: HubWorld, first: int, last: int, until_ms: int | None = None, *, most: int = 1_000, dry_run: bool = False
) -> ReplayedSome:
    wanted = WantedRange(first, last) if until_ms is None else WantedRange(first, last, until_ms)
    return DynamoReplays(world.again(), most).replay(MINE, JOURNAL.name, wanted, world.clock(), dry_run=dry_run)


def stored(world: HubWorld) -> dict[int, Delivery]:
    return {one.position: one.delivery for one in world.deliveries.find("a", None, limit=5_000)}


def delivered(world: HubWorld) -> int:
    return sum(position.delivered for _, position in world.hub.positions.all(MINE))


def test_what_was_delivered_goes_out_again_and_that_it_was_delivered_stays_known(world: HubWorld) -> None:
    """D4, D6"""
    deliver(world, *ids(1, 50))
    first_time = world.clock()
    world.clock.ahead(60)
    assert step(world, 11, 20) == ReplayedSome(10, 10, 10, None)
    assert Counter(one.status.value for one in stored(world).values()) == {"success": 40, "pending": 10}
    assert delivered(world) == 40
    assert stored(world)[11].delivered_ms == first_time
    receiver = Scripted([lambda picks: results(**{pick.event_id: "duplicate" for pick in picks})])
    world.drain(receiver)
    assert receiver.sent == ids(11, 20)
    assert delivered(world) == 50
    again = stored(world)[11]
    assert (again.status, again.delivered_ms, again.attempts) == (Status.DUPLICATE, first_time, 1)
    assert [one.status for one in again.history] == [Status.SUCCESS, Status.DUPLICATE]
    assert stored(world)[10].delivered_ms is None


def test_a_replay_that_fails_for_good_does_not_hide_that_the_target_had_the_event(world: HubWorld) -> None:
    deliver(world, *ids(1, 3))
    first_time = world.clock()
    world.clock.ahead(60)
    step(world, 2, 2)
    world.drain(Scripted([lambda picks: results(**{pick.event_id: "terminal_failed" for pick in picks})]))
    assert (stored(world)[2].status, stored(world)[2].delivered_ms) == (Status.TERMINAL_FAILED, first_time)
    assert delivered(world) == 2


def test_a_step_looks_at_so_many_positions_and_the_next_goes_on(world: HubWorld) -> None:
    deliver(world, *ids(1, 25))
    steps, following = list[ReplayedSome](), 3
    while True:
        steps.append(step(world, following, 22, most=8))
        if steps[-1].following is None:
            break
        following = steps[-1].following
    assert [one.replayed for one in steps] == [8, 8, 4]
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == ids(3, 22)


def test_a_repeated_request_changes_nothing_while_the_first_is_waiting(world: HubWorld) -> None:
    deliver(world, *ids(1, 10))
    begun = world.clock()
    world.clock.ahead(1)
    assert step(world, 1, 10).replayed == 10
    assert step(world, 1, 10) == ReplayedSome(0, 0, 0, None)
    world.drain(Scripted())
    assert step(world, 1, 10, begun) == ReplayedSome(0, 0, 0, None), "it was tried after that time"
    assert step(world, 1, 10).replayed == 10


def test_a_dry_run_counts_and_changes_nothing(world: HubWorld) -> None:
    deliver(world, *ids(1, 10))
    before = stored(world)
    assert step(world, 4, 100, dry_run=True) == ReplayedSome(7, 0, 7, None)
    assert stored(world) == before


def test_what_the_target_passed_over_is_sent_and_what_is_still_to_come_is_left_to_its_turn(world: HubWorld) -> None:
    world.capture(*ids(1, 5))
    world.know(A, start_now=True)
    world.capture(*ids(6, 8))
    assert step(world, 3, 8) == ReplayedSome(3, 3, 0, None)
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == ids(3, 8)
    assert {at: one.delivered_ms for at, one in stored(world).items()} == dict.fromkeys(range(3, 9))


def test_events_that_the_target_does_not_want_or_that_are_pruned_are_left_out(world: HubWorld) -> None:
    deliver(world, *ids(1, 4))
    world.committed.prune(2)
    assert step(world, 1, 4) == ReplayedSome(3, 3, 3, None)
    picky = replace(MINE, prefixes=frozenset({"nothing."}))
    wanted = WantedRange(1, 4)
    assert DynamoReplays(world.again()).replay(picky, JOURNAL.name, wanted, world.clock(), dry_run=False).matched == 0


def test_what_waits_for_another_try_is_tried_at_once(world: HubWorld) -> None:
    world.capture(*ids(1, 3))
    world.drain(Scripted([held("answered 503")]))
    assert {one.status for one in stored(world).values()} == {Status.TRANSIENT}
    assert step(world, 1, 3) == ReplayedSome(3, 3, 0, None)
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == ids(1, 3)


def test_a_long_run_is_cut_where_it_is_replayed_and_nowhere_else(world: HubWorld) -> None:
    deliver(world, *ids(1, 900))
    step(world, 100, 109)
    rows = world.hub.runs.overlapping(MINE.id, JOURNAL.name, 1, 10**6)
    assert [(row.run.first, row.run.last) for row in rows] == [(1, 99), (100, 109), (110, 900)]
