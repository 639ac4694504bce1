"""Many deliveries tried again: which, how many at a time, and what a repeated or broken step leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from millrace.delivery.adapters.dynamodb.bulk import DynamoManyDeliveries
from millrace.delivery.adapters.dynamodb.listing import DynamoDeliveries
from millrace.delivery.domain.bulk import WantedDeliveries
from millrace.delivery.domain.outcomes import held
from millrace.delivery.domain.states import Status
from millrace.delivery.ports.targets import RetriedSome
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.domain.errors import BadRequest
from tests.support.aws_tables import client_of
from tests.support.hub_world import TENANT, HubWorld, on_dynamodb, on_moto
from tests.support.worlds import Scripted, results

GIVEN_UP = WantedDeliveries(Status.TERMINAL_FAILED)
TARGET = f"{TENANT}#a"
HOUR = 3_600_000


@pytest.fixture(params=["moto", "embedded", "lean"])
def world(request: pytest.FixtureRequest) -> Iterator[HubWorld]:
    if request.param == "moto":
        with on_moto() as made:
            yield made
    else:
        yield on_dynamodb(client_of(request), Threads())


def ids(first: int, last: int) -> list[str]:
    return [f"e{number:04}" for number in range(first, last + 1)]


def give_up(world: HubWorld, *event_ids: str) -> None:
    """One request, one answer, one run."""
    world.capture(*event_ids)
    world.drain(Scripted([lambda picks: results(**{pick.event_id: "terminal_failed" for pick in picks})]))


def deliveries(world: HubWorld) -> DynamoDeliveries:
    found: DynamoDeliveries = world.deliveries.inner  # type: ignore[attr-defined]
    return found


def many(world: HubWorld, runs: int = 500, named: int = 1_000) -> DynamoManyDeliveries:
    return DynamoManyDeliveries(deliveries(world), runs, named)


def walk(
    step: DynamoManyDeliveries, world: HubWorld, wanted: WantedDeliveries, *, dry_run: bool = False
) -> list[RetriedSome]:
    steps, after = list[RetriedSome](), ""
    while True:
        steps.append(step.retry(TARGET, wanted, after, world.clock(), dry_run=dry_run))
        if steps[-1].after is None:
            return steps
        after = steps[-1].after
        assert len(steps) < 100


def counts(world: HubWorld) -> Counter[str]:
    return Counter(one.delivery.status.value for one in world.deliveries.find("a", None, limit=5_000))


def test_what_was_given_up_goes_out_again_once_and_in_order(world: HubWorld) -> None:
    """D4"""
    give_up(world, *ids(1, 300))
    give_up(world, *ids(301, 600))
    assert walk(many(world), world, GIVEN_UP) == [RetriedSome(600, 600, None)]
    assert walk(many(world), world, GIVEN_UP) == [RetriedSome(0, 0, None)], "nothing is left to change"
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == ids(1, 600)
    assert counts(world) == {"success": 600}


def test_a_dry_run_counts_and_changes_nothing(world: HubWorld) -> None:
    give_up(world, *ids(1, 20))
    assert walk(many(world), world, GIVEN_UP, dry_run=True) == [RetriedSome(20, 0, None)]
    assert counts(world) == {"terminal_failed": 20}


def test_a_step_reads_only_so_many_runs_and_the_next_goes_on(world: HubWorld) -> None:
    for number in range(1, 8):
        give_up(world, *ids(number, number))
        world.clock.ahead(1)
    steps = walk(many(world, runs=3), world, GIVEN_UP)
    assert [step.retried for step in steps] == [3, 3, 1]
    assert counts(world) == {"pending": 7}


@pytest.mark.parametrize("named", [1, 3, 1_000])
def test_only_types_that_are_named_are_tried_again_however_a_run_is_cut(world: HubWorld, named: int) -> None:
    for number in range(1, 13):
        world.capture(f"e{number}", kind=["build.done", "note"][number % 3 == 0])
    world.drain(Scripted([lambda picks: results(**{pick.event_id: "terminal_failed" for pick in picks})]))
    none = WantedDeliveries(Status.TERMINAL_FAILED, frozenset({"nothing."}))
    assert sum(step.matched for step in walk(many(world, named=named), world, none)) == 0
    builds = WantedDeliveries(Status.TERMINAL_FAILED, frozenset({"build."}))
    assert sum(step.matched for step in walk(many(world, named=named), world, builds, dry_run=True)) == 8
    steps = walk(many(world, named=named), world, builds)
    assert (sum(step.matched for step in steps), sum(step.retried for step in steps)) == (8, 8)
    assert {id_ for id_, status in world.statuses().items() if status != "pending"} == {"e3", "e6", "e9", "e12"}
    assert sum(step.matched for step in walk(many(world, named=named), world, builds)) == 0


def test_the_time_of_the_last_attempt_bounds_what_is_tried_again(world: HubWorld) -> None:
    give_up(world, "early")
    early = world.clock()
    world.clock.ahead(HOUR)
    give_up(world, "late")
    [step] = walk(many(world), world, WantedDeliveries(Status.TERMINAL_FAILED, until_ms=early))
    assert step.retried == 1
    assert world.statuses() == {"early": "pending", "late": "terminal_failed"}


def test_what_waits_is_made_due_once(world: HubWorld) -> None:
    """Its place among those that wait changes, so the walk meets it again."""
    world.capture(*ids(1, 5))
    world.drain(Scripted([held("answered 503")]))
    waiting = WantedDeliveries(Status.TRANSIENT)
    assert sum(step.retried for step in walk(many(world, runs=1), world, waiting)) == 5
    assert sum(step.retried for step in walk(many(world, runs=1), world, WantedDeliveries(Status.PENDING))) == 0
    world.drain(Scripted())
    assert counts(world) == {"success": 5}


def test_a_place_of_another_listing_leads_nowhere(world: HubWorld) -> None:
    with pytest.raises(BadRequest):
        many(world).retry(TARGET, GIVEN_UP, "rows#somebody%#7", world.clock(), dry_run=False)


def test_the_last_attempts_are_remembered_with_their_answers(world: HubWorld) -> None:
    """D11"""
    world.capture("e1")
    for number in range(12):
        world.drain(Scripted([held(f"answered {500 + number}")]))
        world.clock.ahead(2 * HOUR)
    [found] = world.deliveries.find("a", None)
    assert found.delivery.attempts == 12
    assert [one.answer for one in found.delivery.history] == list(range(502, 512))
    world.drain(Scripted())
    [found] = world.deliveries.find("a", None)
    assert [one.status.value for one in found.delivery.history] == ["transient"] * 9 + ["success"]


def test_counting_stops_at_so_many_runs_and_says_so(world: HubWorld) -> None:
    for number in range(1, 5):
        give_up(world, *ids(number, number))
        world.clock.ahead(1)
    some, all_of_them = (deliveries(world).count_some(TARGET, most) for most in (3, 4))
    assert (some.counts, some.complete) == ({Status.TERMINAL_FAILED: 3}, False)
    assert (all_of_them.counts, all_of_them.complete) == ({Status.TERMINAL_FAILED: 4}, True)
