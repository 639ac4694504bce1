"""C9: a run that dies anywhere in the Iceberg step leaves tables of one edition, and the next run makes them equal."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from glue_jobs.columns import TABLES
from glue_jobs.remove_unreachable import remove_unreachable
from glue_jobs.workspace import DirectWorkspace
from millrace.lake.adapters.directory_objects import DirectoryObjects
from millrace.lake.adapters.iceberg_catalog import iceberg_tables
from millrace.lake.application.editions import Editions
from millrace.lake.application.follow_edition import FollowEdition
from millrace.lake.application.verify_tables import VerifyTables
from millrace.lake.domain.archive import sortable_time
from millrace.lake.domain.edition import EVENTS, PUBLISHED, Edition, File, Segment, run_folder
from tests.support.parquet import file_of

KILLS = int(os.environ.get("MILLRACE_LAKE_KILLS", "12"))
NOW = 1_770_000_000_000
HOUR = 3_600_000


class Died(BaseException):
    """The process ended here. No library catches it, as none catches a signal."""


class Lake:
    """Editions of hand-made files, as runs publish them: each adds a file, and now and then some become one."""

    def __init__(self, root: Path) -> None:
        self.root, self.objects = root, DirectoryObjects(root)
        self.workspace = DirectWorkspace(self.objects, root.as_uri() + "/")
        self.rows = {0: 0}
        """Of each edition, how many rows each table has."""

    def publish(self, number: int) -> None:
        over = Editions(self.objects).current()
        run = f"{sortable_time(NOW + number)}-{number:04}"
        edition = Edition(number, run, NOW + number, over.edition.tables)
        for table in PUBLISHED:
            name = run_folder(run, table) + "part.parquet"
            folded = number % 3 == 0
            data = file_of(table, number + (over.edition.rows(table) if folded else 0))
            self.objects.put(name, data)
            new = Segment(run, number + (over.edition.rows(table) if folded else 0), (File(name, len(data)),))
            edition = edition.having(table, [new] if folded else [*over.edition.segments(table), new])
        assert Editions(self.objects).publish(over, edition)
        self.rows[number] = edition.rows(EVENTS)

    def serve(self) -> None:
        """What a job does after it published, with no grace at all."""
        with iceberg_tables(str(self.root), self.objects, TABLES) as tables:
            follow = FollowEdition(self.objects, tables)
            follow()
            follow.forget(NOW + HOUR)
        remove_unreachable(self.workspace, NOW + HOUR, 0)

    def read(self, table: str) -> int | None:
        """As a reader with the library alone sees it; None if there is no table."""
        with iceberg_tables(str(self.root), self.objects, {}) as tables:
            if not tables.catalog.table_exists((tables.namespace, table)):
                return None
            return int(tables.catalog.load_table((tables.namespace, table)).scan().to_arrow().num_rows)

    def unequal(self) -> list[str]:
        with iceberg_tables(str(self.root), self.objects, {}) as tables:
            return [one.table for one in VerifyTables(self.objects, tables)()[1] if not one.equal]


class Deaths:
    """Counts what the step asks of storage and catalog; dies at the chosen call, before or (negative) after it."""

    PLACES: tuple[tuple[type, tuple[str, ...]], ...] = (
        (PyArrowFileIO, ("new_input",)),
        (PyArrowFile, ("create",)),
        (SqlCatalog, ("load_table", "commit_table", "create_namespace")),
        (DirectoryObjects, ("get", "delete")),
    )

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls, self.die_at = 0, 0
        for kind, names in self.PLACES:
            for name in names:
                patch.setattr(kind, name, self._counted(getattr(kind, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            number = self.calls
            if number == self.die_at:
                raise Died
            answer = call(*args, **kwargs)
            if number == -self.die_at:
                raise Died
            return answer

        return counted

    def serve(self, lake: Lake, die_at: int = 0) -> bool:
        """Whether it lived."""
        self.calls, self.die_at = 0, die_at
        try:
            lake.serve()
        except Died:
            return False
        finally:
            self.die_at = 0
        return True


def test_a_step_killed_at_random_calls_shows_whole_editions_and_the_next_makes_the_tables_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeded, lake, deaths = random.Random(19), Lake(tmp_path), Deaths(monkeypatch)
    seen = dict.fromkeys(PUBLISHED, 0)
    died = 0
    for number in range(1, KILLS + 1):
        lake.publish(number)
        lived = deaths.serve(lake, seeded.choice((-1, 1)) * seeded.randint(1, 90))
        died += not lived
        for table in PUBLISHED:
            rows = lake.read(table)
            editions = [edition for edition, count in lake.rows.items() if count == (rows or 0)]
            assert editions, f"{table} shows {rows} rows, which no edition has"
            assert seen[table] <= editions[0] <= number, "a table never goes back and is never ahead of the pointer"
            seen[table] = editions[0]
        if number % 4 == 0:
            assert deaths.serve(lake)
            assert lake.unequal() == []
            assert [lake.read(table) for table in PUBLISHED] == [lake.rows[number]] * 3
    assert died > KILLS // 2, "most of them must die"


def test_an_entry_that_the_catalog_lost_is_made_again_by_the_next_run(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in (1, 2):
        lake.publish(number)
        lake.serve()
    with iceberg_tables(str(tmp_path), lake.objects, {}) as tables:
        tables.catalog.drop_table((tables.namespace, EVENTS))
    assert lake.read(EVENTS) is None
    assert lake.unequal() == [EVENTS]
    lake.serve()
    assert lake.unequal() == []
    assert lake.read(EVENTS) == lake.rows[2]
    pointer = lake.objects.get("lake/pointer.json")
    assert pointer
    assert json.loads(pointer.data)["number"] == 2, "nothing was published anew"


def test_metadata_that_a_dead_run_left_half_written_stops_no_later_run(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in (1, 2):
        lake.publish(number)
        lake.serve()
        (tmp_path / "lake/iceberg/events/metadata/00009-dead.metadata.json").write_bytes(b"")
    assert lake.unequal() == []
