"""C6: a copy of the tables is whole or the one before, and takes nothing that is not for readers."""

from __future__ import annotations

import pytest

from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.application.copy_tables import CopyTables
from millrace.lake.application.editions import Editions
from millrace.lake.domain.edition import EVENTS, KEYS, POINTER, Edition, File, Segment
from millrace.ledger.domain.errors import BadRequest, Unavailable


def lake(*runs: str) -> MemoryObjects:
    """A store with an edition of these runs, each with a file of events and one of keys."""
    objects = MemoryObjects()
    extend(objects, *runs)
    return objects


def extend(objects: MemoryObjects, *runs: str) -> None:
    segments = {EVENTS: list[Segment](), KEYS: list[Segment]()}
    for run in runs:
        for table, of_table in segments.items():
            name, data = f"lake/runs/{run}/{table}/a.parquet", f"{table} of {run}".encode()
            objects.put(name, data)
            of_table.append(Segment(run, 1, (File(name, len(data)),)))
    editions = Editions(objects)
    over = editions.current()
    edition = Edition(over.edition.number + 1, runs[-1], 5, doomed=("ledger/x",))
    for table, of_table in segments.items():
        edition = edition.having(table, of_table)
    assert editions.publish(over, edition)


def names(objects: MemoryObjects) -> list[str]:
    return [one.name for one in objects.list("")]


def test_a_copy_has_the_published_tables_and_no_others() -> None:
    copy = MemoryObjects()
    edition = CopyTables(lake("a"), copy)()
    assert edition == Editions(copy).current().edition
    assert names(copy) == ["lake/manifests/0000000001-a.json", POINTER, "lake/runs/a/events/a.parquet"]


def test_a_copy_again_fetches_what_is_new_and_drops_what_is_gone() -> None:
    source, copy = lake("a", "b"), MemoryObjects()
    CopyTables(source, copy)()
    extend(source, "b", "c")
    source.delete("lake/runs/b/events/a.parquet")
    CopyTables(source, copy)()
    runs = [name for name in names(copy) if name.startswith("lake/runs/")]
    assert runs == ["lake/runs/b/events/a.parquet", "lake/runs/c/events/a.parquet"]
    assert Editions(copy).current().edition.number == 2


def test_a_file_that_went_while_it_was_copied_leaves_the_copy_as_it_was() -> None:
    source, copy = lake("a"), MemoryObjects()
    CopyTables(source, copy)()
    before = Editions(copy).current().edition
    extend(source, "a", "b")
    source.delete("lake/runs/b/events/a.parquet")
    with pytest.raises(Unavailable, match="copy again"):
        CopyTables(source, copy)()
    assert Editions(copy).current().edition == before
    assert copy.get("lake/runs/a/events/a.parquet")


def test_a_half_written_file_of_an_earlier_copy_is_fetched_again() -> None:
    source, copy = lake("a"), MemoryObjects()
    copy.put("lake/runs/a/events/a.parquet", b"half")
    CopyTables(source, copy)()
    found = copy.get("lake/runs/a/events/a.parquet")
    assert found is not None
    assert found.data == b"events of a"


def test_a_store_of_its_own_is_not_overwritten() -> None:
    own = lake("mine")
    with pytest.raises(BadRequest, match="of its own"):
        CopyTables(lake("a"), own)()
    assert Editions(own).current().edition.run == "mine"


def test_without_tables_nothing_is_copied() -> None:
    copy = MemoryObjects()
    assert CopyTables(MemoryObjects(), copy)() == Edition()
    assert names(copy) == []


def test_every_file_is_told_of_once() -> None:
    sizes = list[int]()
    source, copy = lake("a", "b"), MemoryObjects()
    CopyTables(source, copy, sizes.append)()
    assert sizes == [11, 11]
