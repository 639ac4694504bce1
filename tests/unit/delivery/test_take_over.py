"""D1: a journal of nobody goes to the first producer that is known, whole, with its deliveries and its history."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from millrace.delivery.domain.authority import Bearer
from millrace_client.journal.collect import Gc
from millrace_client.journal.journals import ANONYMOUS, Journals, owner
from millrace_client.journal.sqlite.database import SCHEMA, Database
from millrace_client.journal.sqlite.imports import SqliteImports
from millrace_client.journal.sqlite.journal import SqliteJournal
from millrace_client.journal.sqlite.ledger import SqliteLedger
from millrace_client.journal.sqlite.overview import SqliteOverview
from millrace_client.journal.sqlite.take_over import TakeOver
from millrace_client.journal.sqlite.targets import SqliteTargets
from tests.support.worlds import A, B, Scripted, World, event, on_sqlite, results

ME = Bearer("me", "acme")
NOW = 7


def world_of(database: Database) -> World:
    journal, ledger = SqliteJournal(database), SqliteLedger(database)
    return World(journal, journal, ledger, ledger, SqliteTargets(database), SqliteImports(database))


@pytest.fixture
def nobody(tmp_path: Path) -> Iterator[World]:
    made = on_sqlite(tmp_path / ANONYMOUS)
    yield made
    assert isinstance(made.journal, SqliteJournal)
    made.journal.database.connection.close()


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[World]:
    with Journals(tmp_path).open(ME) as database:
        yield world_of(database)


def take_over(mine: World, home: Path) -> int:
    assert isinstance(mine.journal, SqliteJournal)
    return TakeOver(mine.journal.database)(home / ANONYMOUS, NOW)


def rows(world: World, query: str) -> list[Any]:
    assert isinstance(world.journal, SqliteJournal)
    return world.journal.database.connection.execute(query).fetchall()


def ids(world: World) -> list[str]:
    query = "SELECT event_id FROM event_journal JOIN event_body USING (position) ORDER BY position"
    return [id_ for (id_,) in rows(world, query)]


def test_everything_moves_behind_what_is_there_and_is_not_sent_again(
    nobody: World, mine: World, tmp_path: Path
) -> None:
    mine.capture("m1")
    mine.drain(Scripted(), A)
    nobody.capture("n1", "n2", "n3")
    nobody.drain(Scripted([results(n1="success", n2="terminal_failed", n3="rejected")]), A)
    nobody.drain(Scripted(), B)
    nobody.capture("k1", key="k")
    nobody.capture("k2", key="k")
    nobody.journal.audit("opt_out_refused", ["n1"], "", NOW)
    assert take_over(mine, tmp_path) == 5
    assert ids(mine) == ["m1", "n1", "n2", "n3", "k1", "k2"]
    assert ids(nobody) == []
    assert mine.statuses(A) == {"m1": "success", "n1": "success", "n2": "terminal_failed", "n3": "rejected"}
    audits = rows(mine, "SELECT what, subject, detail FROM audit ORDER BY number")
    assert audits == [("opt_out_refused", "n1", ""), ("journal_taken_over", str(tmp_path / ANONYMOUS), "5 events")]
    receiver = Scripted()
    mine.drain(receiver, A)
    mine.drain(receiver, B)
    assert receiver.sent == ["k2", "m1", "k2"], "n1 to n3 were there, k1 was replaced"
    assert mine.payloads.bodies([2]) == {2: event("n1")}
    mine.capture("k3", key="k")
    assert rows(mine, "SELECT count(*) FROM event_journal WHERE superseded_by = 'k3'") == [(0,)], "k2 was attempted"


def test_a_second_time_takes_what_came_since_and_an_empty_journal_leaves_no_trace(
    nobody: World, mine: World, tmp_path: Path
) -> None:
    assert take_over(mine, tmp_path) == 0
    nobody.capture("n1")
    assert take_over(mine, tmp_path) == 1
    assert take_over(mine, tmp_path) == 0
    nobody.capture("n2")
    assert take_over(mine, tmp_path) == 1
    assert ids(mine) == ["n1", "n2"]
    assert rows(mine, "SELECT detail FROM audit") == [("1 events",), ("1 events",)]


def test_who_died_in_between_finds_the_same_events_in_both_and_has_them_once(
    nobody: World, mine: World, tmp_path: Path
) -> None:
    nobody.capture("n1", "n2")
    nobody.drain(Scripted(), A)
    mine.capture("n1", "n2")
    assert take_over(mine, tmp_path) == 2
    assert (ids(mine), ids(nobody)) == (["n1", "n2"], [])
    receiver = Scripted()
    mine.drain(receiver, A)
    assert receiver.sent == []


def test_the_same_id_with_other_content_stays_there_and_is_a_conflict_here(
    nobody: World, mine: World, tmp_path: Path
) -> None:
    mine.capture("e1", n=1)
    nobody.capture("e1", n=2)
    nobody.capture("e2")
    assert take_over(mine, tmp_path) == 1
    assert take_over(mine, tmp_path) == 0
    assert (ids(mine), ids(nobody)) == (["e1", "e2"], ["e1"])
    [both] = mine.imports.compare("e1")
    assert (both.journal, both.source) == (event("e1", n=1), event("e1", n=2))
    assert both.conflict.source == str(tmp_path / ANONYMOUS)
    assert mine.imports.resolve("e1", "source", None, mine.families, NOW) == 1
    assert mine.payloads.bodies([1]) == {1: event("e1", n=2)}
    assert Gc(nobody.payloads, nobody.clock)().events == 0


def test_a_target_that_starts_with_what_comes_now_does_not_get_what_was_there_before(
    nobody: World, mine: World, tmp_path: Path
) -> None:
    mine.capture("m1")
    nobody.capture("n1")
    nobody.know(A, start_now=True)
    nobody.capture("n2")
    take_over(mine, tmp_path)
    target = mine.know(A)
    receiver = Scripted()
    mine.drain(receiver, target)
    assert receiver.sent == ["n2"]


def test_conflicts_provenance_and_pauses_move_too(nobody: World, mine: World, tmp_path: Path) -> None:
    nobody.capture("n1")
    nobody.know(A)
    nobody.states.pause("a", "by hand")
    rows(nobody, "INSERT INTO event_source VALUES ('n1', 'queue.db', '', '7', 0, 7)")
    rows(
        nobody,
        "INSERT INTO migration_conflict (event_id, source, fingerprint, body, reason, found_ms) "
        "VALUES ('n1', 'queue.db', x'00', x'7b7d', 'why', 7)",
    )
    take_over(mine, tmp_path)
    assert mine.states.get("a").paused_why == "by hand"
    assert [one.event_id for one in mine.imports.conflicts()] == ["n1"]
    assert rows(mine, "SELECT source FROM event_source") == [("queue.db",)]
    assert nobody.imports.conflicts() == []


def test_each_producer_has_a_journal_of_its_own_that_says_whose_it_is(tmp_path: Path) -> None:
    """D1: by user and team, however they are written together; nobody's is where it always was."""
    journals = Journals(tmp_path)
    producers = [ME, Bearer("you", "acme"), Bearer("me", "blue"), Bearer("me|acme", None), Bearer(None, "acme")]
    assert len({journals.path(one) for one in producers}) == len(producers)
    assert journals.path(Bearer()) == journals.path(Bearer(" ", "")) == tmp_path / "event_journal.db"
    for one in producers:
        with journals.open(one) as database:
            assert owner(database) == one
            assert database.path.stat().st_mode & 0o077 == 0
    with journals.open(Bearer()) as database:
        assert owner(database) == Bearer()
    assert len(journals.paths()) == len(producers) + 1


def test_a_journal_of_the_version_before_is_read_and_its_cursors_look_again(tmp_path: Path) -> None:
    """Everything a user of today has is in the anonymous journal, in the schema before this one."""
    path = tmp_path / ANONYMOUS
    world = on_sqlite(path)
    world.capture("e1", "e2")
    world.drain(Scripted(), A)
    assert isinstance(world.journal, SqliteJournal)
    world.journal.database.connection.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            "DROP TABLE delivery_missed; DROP TABLE journal_owner; DROP INDEX journal_archived;"
            "ALTER TABLE migration_conflict DROP COLUMN journal_body; PRAGMA user_version = 1;"
        )
    with Journals(tmp_path).open(ME) as database:
        assert TakeOver(database)(path, NOW) == 2
        mine, receiver = world_of(database), Scripted()
        mine.drain(receiver, A)
        assert receiver.sent == []
        assert SqliteOverview(database).journal().retained == 2
    with Database(path) as upgraded, closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(SCHEMA)
        names = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
        assert upgraded.connection.execute(names).fetchall() == fresh.execute(names).fetchall()
        columns = "SELECT name FROM pragma_table_info('migration_conflict') ORDER BY name"
        assert upgraded.connection.execute(columns).fetchall() == fresh.execute(columns).fetchall()
