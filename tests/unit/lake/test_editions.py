"""C6: one pointer is swapped, by one run; a manifest that lost its race stays invisible."""

from __future__ import annotations

import pytest

from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.application.editions import Editions
from millrace.lake.domain.edition import EVENTS, POINTER, Edition, File, Segment, to_fold
from millrace.ledger.domain.errors import Unavailable


def of(run: str, number: int = 1) -> Edition:
    segment = Segment(run, 3, (File(f"lake/runs/{run}/events/a.parquet", 10),))
    return Edition(number, run, 5, doomed=("ledger/x",)).having(EVENTS, [segment, Segment(run, 0, ())])


def test_a_published_edition_is_the_current_one() -> None:
    editions = Editions(MemoryObjects())
    assert editions.current().edition == Edition()
    assert editions.publish(editions.current(), of("a"))
    assert editions.current().edition == of("a")
    assert of("a").rows(EVENTS) == 3
    assert of("a").files(EVENTS) == ["lake/runs/a/events/a.parquet"]


@pytest.mark.parametrize("started", [0, 1])
def test_of_two_that_started_alike_one_is_published(started: int) -> None:
    editions = Editions(MemoryObjects())
    if started:
        editions.publish(editions.current(), of("first"))
    before = editions.current()
    assert editions.publish(before, of("a", 2))
    assert not editions.publish(before, of("b", 2))
    assert editions.current().edition.run == "a"


def test_publishing_again_after_a_lost_answer_succeeds() -> None:
    editions = Editions(MemoryObjects())
    before = editions.current()
    assert editions.publish(before, of("a"))
    assert editions.publish(before, of("a"))


def test_a_pointer_to_nothing_is_an_error_and_not_an_empty_lake() -> None:
    objects = MemoryObjects()
    objects.put(POINTER, b'{"manifest":"lake/manifests/gone.json"}')
    with pytest.raises(Unavailable, match="not there"):
        Editions(objects).current()


def test_a_full_tier_is_folded_lowest_first() -> None:
    small, large = [Segment(str(n), 1, ()) for n in range(3)], [Segment(f"l{n}", 5, ()) for n in range(3)]
    assert to_fold([*large, *small], 3) == small
    assert to_fold([*large, *small[:2]], 3) == large
    assert to_fold([*large[:2], *small[:2]], 3) == []
