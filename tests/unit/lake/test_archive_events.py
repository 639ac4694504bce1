"""C3: everything committed is archived once, whoever dies when; a retry makes the same object."""

from __future__ import annotations

from contextlib import suppress

import pytest

from millrace.lake.application import archive_events
from millrace.lake.application.archive_events import LANES, lane_of
from millrace.lake.application.gather_archive import ObjectLimits
from millrace.lake.ports.lanes import Lane
from millrace.ledger.application.prune import Prune
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from tests.unit.lake.archiving import Died, Fate, Hub, prove

SMALL = ObjectLimits(events=5, bytes=10_000, ledgers=2)


def names(lane: int, count: int) -> list[str]:
    """Ledgers of one lane."""
    found = (f"sync#t#p{number}" for number in range(1000))
    return [name for name in found if lane_of(name) == lane][:count]


def two_lanes() -> Hub:
    hub = Hub()
    for name, count in zip([*names(0, 3), *names(1, 1)], (4, 1, 7, 5), strict=True):
        hub.commit(name, count)
    return hub


def test_events_of_many_ledgers_share_an_object() -> None:
    hub = Hub()
    for name in names(2, 40):
        hub.commit(name, 2)
    done = hub.archiver()(hub.ledgers())
    assert (done.objects, done.events, done.lost, done.left) == (1, 80, 0, [])
    prove(hub)


def test_ledgers_of_four_lanes_make_at_most_four_objects() -> None:
    hub = Hub()
    for number in range(60):
        hub.commit(f"realtime#t#session-{number}", 1)
    assert hub.archiver()(hub.ledgers()).objects == LANES
    prove(hub)


def test_nothing_new_makes_no_object() -> None:
    hub = two_lanes()
    hub.archiver()(hub.ledgers())
    before = dict(hub.objects.stored)
    assert hub.archiver()(hub.ledgers()).objects == 0
    assert hub.objects.stored == before


def test_what_comes_later_goes_into_another_object() -> None:
    hub = two_lanes()
    hub.archiver()(hub.ledgers())
    hub.commit(names(0, 1)[0], 3)
    assert hub.archiver()(hub.ledgers()).events == 3
    prove(hub)


def test_an_object_holds_no_more_than_its_limits_and_one_page_at_least() -> None:
    hub = Hub()
    hub.commit(names(0, 1)[0], 50, per_page=7)
    done = hub.archiver(limits=ObjectLimits(events=5, bytes=10, ledgers=1))(hub.ledgers())
    assert done.objects == 8, "a page is never torn apart"
    prove(hub)


def test_a_long_ledger_is_read_over_the_ends_of_its_buckets() -> None:
    hub = Hub()
    hub.commit(names(0, 1)[0], 2_500, per_page=100)
    assert hub.archiver()(hub.ledgers()).objects == 1
    prove(hub)


@pytest.mark.parametrize("after_effect", [False, True])
def test_an_archiver_may_die_at_any_call_and_another_finishes(after_effect: bool) -> None:
    """The same objects, byte for byte, as if nothing had happened."""
    peaceful = two_lanes()
    counting = Fate()
    peaceful.archiver(counting, SMALL)(peaceful.ledgers())
    prove(peaceful)
    assert counting.calls > 30
    for at in range(counting.calls):
        hub = two_lanes()
        with pytest.raises(Died):
            hub.archiver(Fate(at, after_effect), SMALL)(hub.ledgers())
        hub.archiver(limits=SMALL)(hub.ledgers())
        prove(hub)
        assert hub.objects.stored == peaceful.objects.stored


def test_an_archiver_may_die_again_while_it_finishes() -> None:
    calls = Fate()
    two_lanes().archiver(calls, SMALL)(two_lanes().ledgers())
    for first in range(0, 30, 3):
        for second in range(0, 25, 2):
            hub = two_lanes()
            for at in (first, second):
                try:
                    hub.archiver(Fate(at, after_effect=True), SMALL)(hub.ledgers())
                except Died:
                    hub.commit(names(0, 3)[2], 1)
            hub.archiver(limits=SMALL)(hub.ledgers())
            prove(hub)


def test_what_was_archived_may_be_pruned_before_its_reservation_is_cleared() -> None:
    """A cursor that has moved lets retention go on; whoever finishes the rest must not need what it took."""
    for at in range(12, 40):
        hub = two_lanes()
        with suppress(Died):
            hub.archiver(Fate(at, after_effect=True), SMALL)(hub.ledgers())
        for ledger in hub.ledgers():
            Prune(hub.log, hub.state, ("archive",))(ledger, 100)
        hub.archiver(limits=SMALL)(hub.ledgers())
        prove(hub)


def test_a_late_archiver_that_reads_pruned_pages_finds_its_work_done() -> None:
    hub = two_lanes()
    ledger = Ledger.to_read(names(1, 1)[0])
    with pytest.raises(Died):
        hub.archiver(Fate(3, after_effect=True))([ledger])  # reserved, nothing put
    late = hub.archiver()
    lane = hub.lanes.load(1)
    assert lane.reservation is not None
    hub.archiver()([ledger])
    Prune(hub.log, hub.state, ("archive",))(ledger, 100)
    assert late._put_again(1, lane, lane.reservation) is False


def test_a_log_that_lacks_what_was_reserved_is_an_error_and_not_an_object() -> None:
    hub = two_lanes()
    ledger = Ledger.to_read(names(1, 1)[0])
    with pytest.raises(Died):
        hub.archiver(Fate(3, after_effect=True))([ledger])
    Prune(hub.log, hub.state, ())(ledger, 3)  # retention that does not ask the archive
    with pytest.raises(Unavailable, match="reserved"):
        hub.archiver()([ledger])
    assert not hub.objects.stored


def test_what_was_pruned_before_it_could_be_archived_is_counted_and_passed() -> None:
    hub = Hub()
    name = names(0, 1)[0]
    hub.commit(name, 6)
    Prune(hub.log, hub.state, ())(Ledger.to_read(name), 4)
    done = hub.archiver()(hub.ledgers())
    assert (done.events, done.lost) == (2, 4)
    assert hub.archived() == [(name, 5), (name, 6)]
    hub.commit(name, 3)
    Prune(hub.log, hub.state, ())(Ledger.to_read(name), 9)
    done = hub.archiver()(hub.ledgers())
    assert (done.objects, done.events, done.lost) == (0, 0, 3)
    assert hub.cursor(Ledger.to_read(name)) == 9


def test_a_lane_that_fails_holds_no_other_back() -> None:
    hub = two_lanes()

    class Failing:
        def load(self, number: int) -> Lane:
            if number == 0:
                raise Unavailable("no")
            return hub.lanes.load(number)

        def store(self, number: int, lane: Lane) -> bool:
            return hub.lanes.store(number, lane)

    archiver = hub.archiver()
    object.__setattr__(archiver, "lanes", Failing())
    with pytest.raises(Unavailable):
        archiver(hub.ledgers())
    assert {name for name, _ in hub.archived()} == set(names(1, 1))


def test_ledgers_without_time_left_are_named() -> None:
    hub = two_lanes()
    turns = iter([True, False, False, False])
    archiver = hub.archiver(limits=SMALL)
    object.__setattr__(archiver, "may_go_on", lambda: next(turns))
    done = archiver(hub.ledgers())
    assert done.objects == 1
    assert {ledger.name for ledger in done.left} | {name for name, _ in hub.archived()} == {
        ledger.name for ledger in hub.ledgers()
    }
    hub.archiver(limits=SMALL)(done.left)
    prove(hub)


def test_the_number_of_lanes_is_what_it_always_was() -> None:
    """Another number would put a ledger with an open reservation into another lane."""
    assert archive_events.LANES == 4
    assert [lane_of(name) for name in ("sync#default#demo", "catalog#default#orders")] == [1, 3]
