"""C9: open tables follow the pointer: never ahead of it, never back, and wherever a run dies the next one finishes."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io import FileIO
from typer.testing import CliRunner

from glue_jobs.columns import TABLES
from millrace.lake.adapters.directory_objects import DirectoryObjects
from millrace.lake.adapters.iceberg_catalog import iceberg_tables
from millrace.lake.adapters.iceberg_tables import RUN, IcebergTables
from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.adapters.memory.open_tables import MemoryOpenTables
from millrace.lake.application.editions import Editions
from millrace.lake.application.follow_edition import FollowEdition
from millrace.lake.application.verify_tables import VerifyTables
from millrace.lake.domain.edition import EVENTS, PUBLISHED, STATISTICS, TRANSCRIPTS, Edition, File, Segment
from millrace.lake.ports.objects import Objects
from millrace.lake.ports.open_tables import OpenTables, Shown
from millrace.ledger.domain.errors import Unavailable
from millrace_operator.tables import app
from tests.support.parquet import file_of

KILLS = int(os.environ.get("MILLRACE_LAKE_KILLS", "8"))


class Killed(Exception):
    """The process ended here."""


def rows_in(name: str) -> int:
    return int(name.rpartition("/")[2].partition(".")[0])


def publish(objects: Objects, *runs: int) -> Edition:
    """An edition whose tables consist of these runs' files; a run's number is the number of its rows."""
    segments: dict[str, list[Segment]] = {table: [] for table in PUBLISHED}
    for run in runs:
        for table in PUBLISHED:
            name, data = f"lake/runs/{run:04}/{table}/{run}.parquet", file_of(table, run)
            objects.put(name, data)
            segments[table].append(Segment(f"{run:04}", run, (File(name, len(data)),)))
    editions = Editions(objects)
    over = editions.current()
    edition = Edition(over.edition.number + 1, f"{runs[-1]:04}" if runs else "none", 5)
    for table in PUBLISHED:
        edition = edition.having(table, segments[table])
    assert editions.publish(over, edition)
    return edition


def equal(objects: Objects, tables: OpenTables) -> bool:
    return all(verdict.equal for verdict in VerifyTables(objects, tables)()[1])


def test_tables_are_brought_to_the_edition_in_one_step_each_and_only_if_they_differ() -> None:
    objects, tables = MemoryObjects(), MemoryOpenTables(rows_in)
    follow = FollowEdition(objects, tables)
    follow()
    assert tables.history == {}, "there is nothing to show yet"
    publish(objects, 1)
    publish(objects, 1, 2)
    follow()
    follow()
    assert {table: [one.run for _, one in steps] for table, steps in tables.history.items()} == {
        table: ["0002"] for table in PUBLISHED
    }
    assert equal(objects, tables)


class Overtaken(MemoryOpenTables):
    """Another run publishes the second edition and shows it, at the first call of `at`, before its effect."""

    def __init__(self, objects: Objects, tables: MemoryOpenTables, at: str) -> None:
        self.objects, self.inner, self.left = objects, tables, [at]

    def shown(self, table: str) -> Shown | None:
        self._meanwhile("shown")
        return self.inner.shown(table)

    def show(self, table: str, over: Shown | None, files: Collection[str], run: str) -> bool:
        self._meanwhile("show")
        return self.inner.show(table, over, files, run)

    def _meanwhile(self, call: str) -> None:
        if call in self.left:
            self.left.remove(call)
            publish(self.objects, 1, 2)
            FollowEdition(self.objects, self.inner)()


@pytest.mark.parametrize("at", ["shown", "show"])
def test_who_is_overtaken_never_takes_a_table_back(at: str) -> None:
    objects, tables = MemoryObjects(), MemoryOpenTables(rows_in)
    publish(objects, 1)
    FollowEdition(objects, Overtaken(objects, tables, at))()
    assert {one.run for steps in tables.history.values() for _, one in steps} == {"0002"}
    assert equal(objects, tables)


def test_a_table_that_others_change_for_ever_fails_the_run() -> None:
    objects = MemoryObjects()
    publish(objects, 1)

    class Contended(MemoryOpenTables):
        def show(self, *_: Any) -> bool:
            return False

    with pytest.raises(Unavailable, match="run again"):
        FollowEdition(objects, Contended(rows_in))()


def test_verification_names_what_is_not_shown_and_what_should_not_be() -> None:
    objects, tables = MemoryObjects(), MemoryOpenTables(rows_in)
    assert VerifyTables(objects, tables)() == (Edition(), [])
    publish(objects, 1, 2)
    FollowEdition(objects, tables)()
    publish(objects, 2, 3)
    del tables.history[STATISTICS]
    _, (events, transcripts, statistics) = VerifyTables(objects, tables)()
    assert (events.missing, events.extra) == (
        ("lake/runs/0003/events/3.parquet",),
        ("lake/runs/0001/events/1.parquet",),
    )
    assert (events.rows, events.expected_rows, events.equal) == (3, 5, False)
    assert (transcripts.equal, statistics.there, statistics.equal) == (False, False, False)
    FollowEdition(objects, tables)()
    assert equal(objects, tables)


@dataclass
class Iceberg:
    objects: DirectoryObjects
    tables: IcebergTables

    def steps(self, table: str) -> list[str]:
        found = self.tables.catalog.load_table((self.tables.namespace, table))
        return [one.summary.additional_properties[RUN] for one in found.snapshots() if one.summary]


@pytest.fixture
def iceberg(tmp_path: Path) -> Iterator[Iceberg]:
    objects = DirectoryObjects(tmp_path)
    with iceberg_tables(str(tmp_path), objects, TABLES) as tables:
        yield Iceberg(objects, tables)


def test_a_deleted_catalog_entry_comes_back_from_the_manifest(iceberg: Iceberg) -> None:
    publish(iceberg.objects, 1, 2)
    FollowEdition(iceberg.objects, iceberg.tables)()
    iceberg.tables.catalog.drop_table((iceberg.tables.namespace, EVENTS))
    assert not equal(iceberg.objects, iceberg.tables)
    FollowEdition(iceberg.objects, iceberg.tables)()
    assert equal(iceberg.objects, iceberg.tables)
    assert iceberg.tables.catalog.load_table((iceberg.tables.namespace, EVENTS)).scan().count() == 3


def test_a_column_that_is_new_is_added_and_older_files_have_nothing_in_it(tmp_path: Path) -> None:
    objects, fewer = DirectoryObjects(tmp_path), TABLES[EVENTS][:-1]
    objects.put("lake/runs/1/events/old.parquet", file_of(EVENTS, 2, fewer))
    objects.put("lake/runs/2/events/new.parquet", file_of(EVENTS, 1))
    with iceberg_tables(str(tmp_path), objects, {EVENTS: fewer}) as before:
        assert before.show(EVENTS, None, ["lake/runs/1/events/old.parquet"], "1")
    with iceberg_tables(str(tmp_path), objects, TABLES) as after:
        both = ["lake/runs/1/events/old.parquet", "lake/runs/2/events/new.parquet"]
        assert after.show(EVENTS, after.shown(EVENTS), both, "2")
        rows = after.catalog.load_table((after.namespace, EVENTS)).scan().to_arrow().to_pylist()
    assert sorted(str(row["archive_object"]) for row in rows) == ["None", "None", "text"]
    assert {row["ledger"] for row in rows} == {"text"}


def test_the_command_says_what_differs_and_fails(tmp_path: Path) -> None:
    objects, command = DirectoryObjects(tmp_path), ["verify", "--store", str(tmp_path)]
    publish(objects, 1)
    with iceberg_tables(str(tmp_path), objects, TABLES) as tables:
        FollowEdition(objects, tables)()
    equal_tables = CliRunner().invoke(app, command)
    assert (equal_tables.exit_code, equal_tables.stdout.count("1 of 1 rows, equal")) == (0, 3)
    publish(objects, 1, 2)
    behind = CliRunner().invoke(app, command)
    assert behind.exit_code == 1
    assert "not shown: lake/runs/0002/events/2.parquet" in behind.stdout
    told = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert [one["equal"] for one in told["tables"]] == [False] * 3


class DyingIO:
    """Stands before the files of Iceberg and dies at a chosen call, before its effect or after it."""

    def __init__(self, inner: FileIO, die: Callable[[], None]) -> None:
        self.inner, self.die = inner, die

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.inner, name)
        if name not in ("new_input", "new_output"):
            return call

        def called(*arguments: Any) -> Any:
            self.die()
            return call(*arguments)

        return called


def test_a_step_that_dies_anywhere_is_finished_by_the_next_and_no_table_is_ahead_of_the_pointer(
    iceberg: Iceberg, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the pointer and the tables, between two tables, and within a commit of Iceberg."""
    objects, tables = iceberg.objects, iceberg.tables
    seeded = random.Random(11)
    left = 0

    def die() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed

    commit = type(tables.catalog).commit_table

    def commit_or_die(*arguments: Any) -> Any:
        die()
        answer = commit(*arguments)
        die()
        return answer

    monkeypatch.setattr(type(tables.catalog), "commit_table", commit_or_die)
    object.__setattr__(tables, "io", DyingIO(tables.io, die))
    runs: list[int] = []
    died = 0
    for number in range(1, KILLS + 1):
        runs = [*runs[-2:], number]
        edition = publish(objects, *runs)
        left = seeded.randint(1, 45)
        try:
            FollowEdition(objects, tables)()
        except Killed:
            died += 1
        left = 0
        for table in PUBLISHED:
            shown = tables.shown(table)
            assert shown is None or shown.run <= edition.run, "ahead of the pointer"
            assert shown is None or shown.rows == sum(map(rows_in, shown.files)), "half of a step"
    FollowEdition(objects, tables)()
    assert died > KILLS // 3, "the deaths must be where the step works"
    assert equal(objects, tables)
    for table in (EVENTS, TRANSCRIPTS, STATISTICS):
        steps = iceberg.steps(table)
        assert steps == sorted(set(steps)), "one step for a run, in the order of runs"
        found = tables.catalog.load_table((tables.namespace, table))
        assert found.scan().count() == sum(runs)
        snapshot = found.current_snapshot()
        assert snapshot
        assert len(snapshot.manifests(found.io)) <= len(runs) + 1, "lists of removed files do not pile up"
