"""D10: what the old queues hold comes into the journal, each source by itself, as often as one likes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from millrace.delivery.domain.families import Families, Family
from millrace.delivery.domain.states import Delivery, Status
from millrace.ledger.domain.errors import Conflict, NotFound
from millrace_client.journal.collect import Gc
from millrace_client.journal.memory.journal import MemoryJournal
from millrace_client.journal.migrate import Migrate, Migrated
from millrace_client.journal.migration_ports import Imported
from millrace_client.journal.old_queues import OldQueues
from millrace_client.journal.sqlite.imports import SqliteImports
from millrace_client.journal.sqlite.targets import SqliteTargets
from tests.support.old_queues import journaled, note, old_journal, old_queue, queued, scoped
from tests.support.worlds import A, Scripted, World


def migrate(world: World, home: Path, *, clean: bool = False) -> Migrated:
    return Migrate(OldQueues(home), world.imports, world.families, world.clock)(clean=clean)


def bodies(world: World) -> dict[str, bytes]:
    return {one.event_id: world.payloads.bodies([one.position])[one.position] for one in world.payloads.retained()}


def provenance(world: World, event_id: str) -> dict[str, str]:
    """Source → scope."""
    if isinstance(world.imports, MemoryJournal):
        return world.imports.by_id[event_id].sources
    assert isinstance(world.imports, SqliteImports)
    query = "SELECT source, scope FROM event_source WHERE event_id = ?"
    return dict(world.imports.database.connection.execute(query, (event_id,)).fetchall())


def test_multiple_scoped_queues_and_the_legacy_one_migrate_in_one_run(world: World, tmp_path: Path) -> None:
    """Required: Multiple scoped DBs migrate in one run."""
    old_queue(tmp_path / "queue.db", note("e1"), uploads=2)
    old_queue(scoped(tmp_path, "a"), note("e2"), note("e3"), failures=1)
    old_queue(scoped(tmp_path, "b"), note("e4"))
    old_queue(tmp_path / "queues" / "queue-short.db", note("stranger"))
    migrated = migrate(world, tmp_path)
    assert migrated.ok
    assert migrated.strangers == [str(tmp_path / "queues" / "queue-short.db")], "named, not skipped in silence"
    assert [report.imported for report in migrated.sources] == [Imported(1), Imported(2), Imported(1)]
    assert [(one.body_uploads, one.body_upload_failures) for one in migrated.sources] == [(2, 0), (0, 1), (0, 0)]
    assert bodies(world) == {f"e{n}": json.dumps(note(f"e{n}")).encode() for n in (1, 2, 3, 4)}
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == ["e1", "e2", "e3", "e4"]


def test_an_unknown_digest_migrates_with_unknown_provenance(world: World, tmp_path: Path) -> None:
    """Required: Unknown digest source migrates with unknown provenance: the digest is noted, no URL or team made up."""
    source = old_queue(scoped(tmp_path, "c"), note("e1"))
    migrate(world, tmp_path)
    assert provenance(world, "e1") == {str(source): "c" * 16}


def test_identical_twins_are_imported_once_with_both_provenances(world: World, tmp_path: Path) -> None:
    """Required: Identical duplicate event IDs dedupe with source provenance. Another spelling is no other content."""
    one = old_queue(tmp_path / "queue.db", note("e1", n=1))
    other = old_queue(scoped(tmp_path, "a"), ("e1", '{"n":1.0,  "event_type":"note","event_id":"e1"}'))
    assert migrate(world, tmp_path).ok
    assert bodies(world) == {"e1": json.dumps(note("e1", n=1)).encode()}
    assert provenance(world, "e1") == {str(one): "", str(other): "a" * 16}


def test_divergent_twins_make_a_conflict_and_leave_the_source(world: World, tmp_path: Path) -> None:
    """Required: Divergent duplicate event IDs create a conflict and preserve the source DB."""
    old_queue(tmp_path / "queue.db", note("e1", n=1))
    source = old_queue(scoped(tmp_path, "a"), note("e1", n=2), note("e2"))
    before = source.read_bytes()
    migrated = migrate(world, tmp_path, clean=True)
    assert not migrated.ok
    assert migrated.cleanup_blocked
    assert source.read_bytes() == before
    assert queued(tmp_path / "queue.db") == ["e1"], "open conflicts block every clean-up"
    [conflict] = world.imports.conflicts()
    assert (conflict.event_id, conflict.source) == ("e1", str(source))
    assert json.loads(bodies(world)["e1"])["n"] == 1
    assert "e2" in bodies(world), "its neighbours are imported"


def test_a_second_run_changes_nothing(world: World, tmp_path: Path) -> None:
    old_queue(tmp_path / "queue.db", note("e1"), ("bad", "{"))
    old_queue(scoped(tmp_path, "a"), note("e1", n=2))
    first = migrate(world, tmp_path)
    kept, open_ones = bodies(world), world.imports.conflicts()
    again = migrate(world, tmp_path)
    assert [one.imported for one in first.sources] == [Imported(1, 0, 1), Imported(0, 0, 1)]
    assert [one.imported for one in again.sources] == [Imported(0, 1, 1), Imported(0, 0, 1)]
    assert (bodies(world), world.imports.conflicts()) == (kept, open_ones)


def test_keeping_the_journals_content_settles_the_conflict_for_good(world: World, tmp_path: Path) -> None:
    old_queue(tmp_path / "queue.db", note("e1", n=1))
    old_queue(scoped(tmp_path, "a"), note("e1", n=2))
    old_queue(scoped(tmp_path, "b"), note("e1", n=3))
    migrate(world, tmp_path)
    assert world.imports.resolve("e1", "journal", None, world.families, world.clock()) == 2
    assert migrate(world, tmp_path).ok
    assert json.loads(bodies(world)["e1"])["n"] == 1
    with pytest.raises(NotFound):
        world.imports.resolve("e1", "journal", None, world.families, world.clock())


def test_keeping_the_sources_content_needs_one_source_and_an_event_nobody_was_sent(
    world: World, tmp_path: Path
) -> None:
    old_queue(tmp_path / "queue.db", note("e1", n=1))
    a, b = old_queue(scoped(tmp_path, "a"), note("e1", n=2)), old_queue(scoped(tmp_path, "b"), note("e1", n=3))
    migrate(world, tmp_path)
    with pytest.raises(Conflict):
        world.imports.resolve("e1", "source", None, world.families, world.clock())
    assert world.imports.resolve("e1", "source", str(a), world.families, world.clock()) == 1
    assert json.loads(bodies(world)["e1"])["n"] == 2
    world.drain(Scripted())
    with pytest.raises(Conflict):
        world.imports.resolve("e1", "source", str(b), world.families, world.clock())
    assert json.loads(bodies(world)["e1"])["n"] == 2, "delivered bytes are frozen"
    assert world.imports.resolve("e1", "journal", None, world.families, world.clock()) == 1


def test_once_settled_by_the_source_the_others_are_compared_with_that(world: World, tmp_path: Path) -> None:
    old_queue(tmp_path / "queue.db", note("e1", n=1))
    old_queue(scoped(tmp_path, "a"), note("e1", n=2))
    migrate(world, tmp_path)
    world.imports.resolve("e1", "source", None, world.families, world.clock())
    [report, _] = migrate(world, tmp_path).sources
    assert report.imported.conflicts == 1, "now queue.db is the one that disagrees"
    world.imports.resolve("e1", "journal", None, world.families, world.clock())
    assert migrate(world, tmp_path).ok


@pytest.mark.parametrize(
    "data",
    ["{", "[]", '{"event_id":"other","event_type":"note"}', '{"event_id":"e1"}'],
)
def test_a_row_that_cannot_be_an_event_is_a_conflict_and_is_not_lost(world: World, tmp_path: Path, data: str) -> None:
    old_queue(tmp_path / "queue.db", ("e1", data), note("e2"))
    migrated = migrate(world, tmp_path)
    assert not migrated.ok
    assert [one.event_id for one in world.imports.conflicts()] == ["e1"]
    assert list(bodies(world)) == ["e2"]
    with pytest.raises(Conflict):
        world.imports.resolve("e1", "source", None, world.families, world.clock())


def test_a_corrupt_or_locked_source_is_reported_untouched_and_hurts_no_other(world: World, tmp_path: Path) -> None:
    corrupt = scoped(tmp_path, "a")
    corrupt.parent.mkdir()
    corrupt.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096)
    locked = old_queue(scoped(tmp_path, "b"), note("e1"))
    old_queue(scoped(tmp_path, "c"), note("e2"))
    before = corrupt.read_bytes(), locked.read_bytes()
    with closing(sqlite3.connect(locked, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        migrated = migrate(world, tmp_path, clean=True)
    assert not migrated.ok
    assert [bool(one.problem) for one in migrated.sources] == [True, True, False]
    assert "locked" in migrated.sources[1].problem
    assert list(bodies(world)) == ["e2"]
    assert (corrupt.read_bytes(), locked.read_bytes()) == before
    corrupt.unlink()
    assert migrate(world, tmp_path).ok
    assert list(bodies(world)) == ["e2", "e1"]


def test_cleaning_deletes_what_the_journal_has_and_never_a_body_upload(world: World, tmp_path: Path) -> None:
    source = old_queue(tmp_path / "queue.db", note("e1"), note("e2"), uploads=3)
    migrated = migrate(world, tmp_path, clean=True)
    assert [one.cleaned for one in migrated.sources] == [2]
    assert queued(source) == []
    assert OldQueues(tmp_path).read(migrated.sources[0].source).body_uploads == 3
    assert migrate(world, tmp_path, clean=True).ok
    receiver = Scripted()
    world.drain(receiver, A)
    assert receiver.sent == ["e1", "e2"]


@pytest.mark.parametrize("keep", ["journal", "source"])
def test_both_contents_can_be_compared_before_a_conflict_is_settled_and_after(
    world: World, tmp_path: Path, keep: str
) -> None:
    """D3, D10: only gc and archive destroy, so what was not chosen stays readable under the conflict."""
    old_queue(tmp_path / "queue.db", note("e1", n=1))
    a, b = old_queue(scoped(tmp_path, "a"), note("e1", n=2)), old_queue(scoped(tmp_path, "b"), note("e1", n=3))
    migrate(world, tmp_path)

    def contents() -> list[tuple[str, bytes | None, bytes, str]]:
        found = world.imports.compare("e1")
        return [(one.conflict.source, one.journal, one.source, one.conflict.resolved) for one in found]

    one, two, three = (json.dumps(note("e1", n=n)).encode() for n in (1, 2, 3))
    assert contents() == [(str(a), one, two, ""), (str(b), one, three, "")]
    world.imports.resolve("e1", keep, str(a), world.families, world.clock())
    other = "" if keep == "source" else "journal"
    assert sorted(contents()) == [(str(a), one, two, keep), (str(b), one, three, other)]
    assert bodies(world)["e1"] == (two if keep == "source" else one)
    world.drain(Scripted())
    Gc(world.payloads, world.clock)()
    assert {found.source for found in world.imports.compare("e1")} == {two, three}
    assert world.imports.compare("nothing") == []


def test_what_is_kept_of_a_source_gets_the_family_of_its_type_and_every_target_looks_at_it(
    world: World, tmp_path: Path
) -> None:
    """D2, D10: a local note that turns out to be an order is delivered, and the other way round it is not."""
    world.families = Families({"here.": Family.LOCAL_ONLY})
    old_queue(tmp_path / "queue.db", ("e1", ORDER % ("e1", "here.note")), ("e2", ORDER % ("e2", "order.paid")))
    old_queue(scoped(tmp_path, "a"), ("e1", ORDER % ("e1", "order.paid")), ("e2", ORDER % ("e2", "here.note")))
    migrate(world, tmp_path)
    world.imports.resolve("e2", "source", None, world.families, world.clock())
    receiver = Scripted()
    world.drain(receiver)
    assert receiver.sent == [], "both are local by now"
    world.imports.resolve("e1", "source", None, world.families, world.clock())
    world.drain(receiver)
    assert receiver.sent == ["e1"]


ORDER = '{"event_id": "%s", "event_type": "%s"}'


def test_journals_of_the_tools_in_use_migrate_by_the_rules_of_queues(world: World, tmp_path: Path) -> None:
    """D10: twins merge, divergent ones conflict, unreadable ones are kept, the source stays as it is."""
    old_queue(tmp_path / "queue.db", note("q1"), note("e2", n=2))
    source = old_journal(
        tmp_path / "event_journal" / "journal-0123456789abcdef.db", note("e1"), note("q1"), note("e2"), ("bad", "{")
    )
    old_journal(tmp_path / "event_journal" / "journal-local.db", note("e3"))
    (tmp_path / "event_journal" / "notes.txt").write_text("mine")
    (tmp_path / "event_journal" / "journal-local.db-wal").write_bytes(b"")
    before = source.read_bytes()
    migrated = migrate(world, tmp_path, clean=True)
    assert [one.imported for one in migrated.sources] == [Imported(2), Imported(1, 1, 2), Imported(1)]
    assert migrated.strangers == [str(tmp_path / "event_journal" / "notes.txt")]
    assert migrated.cleanup_blocked
    assert source.read_bytes() == before
    assert list(bodies(world)) == ["q1", "e2", "e1", "e3"]
    assert bodies(world)["e1"] == json.dumps(note("e1")).encode()
    assert provenance(world, "q1") == {str(tmp_path / "queue.db"): "", str(source): "0123456789abcdef"}
    assert {one.event_id for one in world.imports.conflicts()} == {"e2", "bad"}
    assert [one.imported for one in migrate(world, tmp_path).sources] == [
        Imported(0, 2),
        Imported(0, 2, 2),
        Imported(0, 1),
    ]
    for event_id in ("e2", "bad"):
        world.imports.resolve(event_id, "journal", None, world.families, world.clock())
    assert migrate(world, tmp_path, clean=True).ok
    assert journaled(source) == []


def test_deliveries_of_the_tools_in_use_are_kept_under_a_name_that_is_no_target_of_ours(
    world: World, tmp_path: Path
) -> None:
    """D5, D10: history stays, the bytes are frozen, and whether it is the same place nobody knows: it is sent again."""
    deliveries = {("e1", "a"): "success", ("e2", "a"): "failed_transient", ("e2", "t2"): "terminal-failed"}
    old_journal(tmp_path / "event_journal" / "journal-x.db", note("e1"), note("e2"), note("e3"), deliveries=deliveries)
    assert migrate(world, tmp_path).ok
    found = imported_deliveries(world)
    first_ms = 1782691200000
    assert found[("e1", "a")] == Delivery(Status.SUCCESS, 3, first_ms, first_ms + 60_000, None, "why")
    assert {key: delivery.status for key, delivery in found.items()} == {
        ("e1", "a"): Status.SUCCESS,
        ("e2", "a"): Status.TRANSIENT,
        ("e2", "t2"): Status.TERMINAL_FAILED,
    }
    old_queue(tmp_path / "queue.db", note("e1", n=2), note("e3", n=2))
    migrate(world, tmp_path)
    with pytest.raises(Conflict, match="frozen"):
        world.imports.resolve("e1", "source", None, world.families, world.clock())
    assert world.imports.resolve("e3", "source", None, world.families, world.clock()) == 1
    receiver = Scripted()
    world.drain(receiver, A)
    assert receiver.sent == ["e1", "e2", "e3"]
    assert Gc(world.payloads, world.clock)().events == 3, "nothing waits for a target nobody knows"


def imported_deliveries(world: World) -> dict[tuple[str, str], Delivery]:
    """By event, and by the target's name in the source."""
    if isinstance(world.imports, MemoryJournal):
        kept = world.imports.kept
        return {(one.event.event_id, id_): found for one in kept for id_, found in one.delivered_elsewhere.items()}
    assert isinstance(world.states, SqliteTargets)
    assert world.states.known() == []
    names = ("a", "t2")
    return {
        (found.event_id, name): found.delivery
        for name in names
        for found in world.deliveries.find(f"unknown:{name}", None)
    }


def test_a_file_that_is_no_journal_of_theirs_is_reported_and_hurts_no_other(world: World, tmp_path: Path) -> None:
    strange = tmp_path / "event_journal" / "journal-a.db"
    strange.parent.mkdir()
    with closing(sqlite3.connect(strange)) as connection, connection:
        connection.execute("CREATE TABLE event_journal (id INTEGER PRIMARY KEY)")
    with closing(sqlite3.connect(tmp_path / "event_journal" / "journal-b.db")) as connection, connection:
        connection.execute("CREATE TABLE other (id INTEGER PRIMARY KEY)")
    old_journal(tmp_path / "event_journal" / "journal-c.db", note("e1"))
    migrated = migrate(world, tmp_path)
    assert [bool(one.problem) for one in migrated.sources] == [True, False, False]
    assert list(bodies(world)) == ["e1"]
