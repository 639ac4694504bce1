"""D3: what was archived can be read back, and a drain that cannot deliver it says so."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from millrace.delivery.domain.families import Families, Family
from millrace_client.journal.archive_file import ArchiveFolder
from millrace_client.journal.collect import Archive
from millrace_client.journal.memory.journal import MemoryJournal
from millrace_client.journal.restore import Restore, Restored
from millrace_client.journal.sqlite.journal import SqliteJournal
from tests.support.worlds import A, B, Scripted, World, event
from tests.unit.delivery.test_journal import audits, retained
from tests.unit.delivery.test_overview import overview


def archived(world: World, folder: Path) -> Path:
    """e1 to e3 went to A, and then into one file."""
    world.capture("e1", "e2", "e3")
    world.drain(Scripted(), A)
    [file] = Archive(world.payloads, ArchiveFolder(folder), world.clock)().files
    return Path(file)


def restore(world: World, folder: Path, *, dry_run: bool = False) -> Restored:
    assert isinstance(world.payloads, MemoryJournal | SqliteJournal)
    return Restore(world.payloads, ArchiveFolder(folder), world.clock)(dry_run=dry_run)


def missed(world: World) -> dict[str, int]:
    return {one.target.id: one.archived for one in overview(world).targets()}


def test_what_was_archived_comes_back_byte_for_byte_and_the_file_stays(world: World, tmp_path: Path) -> None:
    file = archived(world, tmp_path / "archive")
    assert retained(world) == []
    assert overview(world).journal().archived == 3
    assert restore(world, tmp_path / "archive", dry_run=True).events == 3
    assert retained(world) == []
    done = restore(world, tmp_path / "archive")
    assert (done.events, done.files, done.problems) == (3, [str(file)], {})
    assert done.size == 3 * len(event("e1"))
    assert retained(world) == ["e1", "e2", "e3"]
    assert world.payloads.bodies([1, 2, 3]) == {n: event(f"e{n}") for n in (1, 2, 3)}
    assert file.is_file()
    assert ("archive_restored", str(file)) in audits(world)
    assert restore(world, tmp_path / "archive").events == 0
    assert overview(world).journal().archived == 0


def test_a_target_that_lacks_what_is_archived_is_told_of_and_gets_it_once_it_is_restored(
    world: World, tmp_path: Path
) -> None:
    archived(world, tmp_path)
    world.capture("e4")
    receiver = Scripted()
    world.drain(receiver, B)
    world.drain(receiver, A)
    assert receiver.sent == ["e4", "e4"]
    assert missed(world) == {"a": 0, "b": 3}
    restore(world, tmp_path)
    world.drain(receiver, B)
    world.drain(receiver, A)
    assert receiver.sent == ["e4", "e4", "e1", "e2", "e3"]
    assert missed(world) == {"a": 0, "b": 0}


def test_nobody_misses_what_was_not_wanted_replaced_or_before_its_start(world: World, tmp_path: Path) -> None:
    world.families = Families({"here.": Family.LOCAL_ONLY})
    world.capture("h", kind="here.note")
    world.capture("k1", key="k")
    world.capture("k2", key="k")
    world.drain(Scripted(), A)
    Archive(world.payloads, ArchiveFolder(tmp_path), world.clock)()
    late = world.know(B, start_now=True)
    world.drain(Scripted(), late)
    assert missed(world) == {"a": 0, "b": 0}


@pytest.mark.parametrize("harm", ["gone", "cut", "other"])
def test_a_file_that_is_gone_or_harmed_is_named_and_nothing_of_it_is_restored(
    world: World, tmp_path: Path, harm: str
) -> None:
    file = archived(world, tmp_path / "archive")
    content = gzip.decompress(file.read_bytes())
    if harm == "gone":
        file.unlink()
    elif harm == "cut":
        file.write_bytes(file.read_bytes()[:-20])
    else:
        file.write_bytes(gzip.compress(content.replace(b"note", b"nota")))
    done = restore(world, tmp_path / "archive")
    assert (done.events, list(done.problems)) == (0, [str(file)])
    assert retained(world) == []


def test_files_that_were_moved_are_found_by_their_name(world: World, tmp_path: Path) -> None:
    archived(world, tmp_path / "archive")
    (tmp_path / "archive").rename(tmp_path / "moved")
    assert restore(world, tmp_path / "moved").events == 3
