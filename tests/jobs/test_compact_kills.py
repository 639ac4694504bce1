"""C6: a run that dies anywhere, at a storage call or by SIGKILL, is repaired by the next; readers never see a half."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from glue_jobs.columns import TABLES
from glue_jobs.compact.main import main
from glue_jobs.compact.run import NOTHING_NEW, PUBLISHED
from millrace.lake.adapters.iceberg_catalog import CATALOG_FILE, iceberg_tables
from millrace.lake.domain.edition import EVENTS, STATISTICS, TRANSCRIPTS, Edition
from tests.jobs.conftest import QUICK_ARGUMENTS
from tests.jobs.faults import FaultyWorkspace, Killed
from tests.jobs.lake import Lake, Row, told_of
from tests.jobs.random_archives import REGISTRY, Archives, as_object

KILLS = int(os.environ.get("MILLRACE_LAKE_KILLS", "4"))
ROOT = Path(__file__).parents[2]


def tables(lake: Lake, edition: Edition | None = None) -> dict[str, list[Row]]:
    return {table: lake.table(table, edition) for table in (EVENTS, STATISTICS, TRANSCRIPTS)}


def put(lakes: list[Lake], objects: dict[str, list[Row]]) -> None:
    for name, lines in objects.items():
        for lake in lakes:
            lake.archive_bytes(name, as_object(lines))


def test_runs_killed_at_random_calls_leave_the_tables_that_unharmed_ones_make(
    spark: SparkSession, tmp_path: Path
) -> None:
    seeded = random.Random(7)
    unharmed, harmed = Lake(spark, tmp_path / "unharmed", REGISTRY), Lake(spark, tmp_path / "harmed", REGISTRY)
    archives = list(Archives(7, events=30, runs=2).runs())
    complete = {0: tables(unharmed)}
    calls = 0

    def look(_: int) -> None:
        """A reader that polls at every call of every dying run."""
        seen = harmed.edition
        if seen.number not in looked:
            looked[seen.number] = tables(harmed, seen)
        assert looked[seen.number] == complete[seen.number]

    for number, objects in enumerate(archives, 1):
        put([unharmed, harmed], objects)
        counting = FaultyWorkspace(unharmed.workspace)
        assert unharmed.compact(workspace=counting).outcome == PUBLISHED
        complete[number], calls = tables(unharmed), counting.calls
        looked: dict[int, dict[str, list[Row]]] = {}
        for _ in range(KILLS // len(archives)):
            die_at = seeded.choice((-1, 1)) * seeded.randint(1, calls)
            try:
                report = harmed.compact(workspace=FaultyWorkspace(harmed.workspace, die_at, look))
                assert report.outcome == NOTHING_NEW, "only a run killed after its publication leaves nothing to do"
            except Killed:
                look(0)
        harmed.compact()
        assert tables(harmed) == complete[number]
        assert sorted(one["id"] for one in harmed.quarantine()) == sorted(one["id"] for one in unharmed.quarantine())


def test_a_run_ended_by_sigkill_leaves_nothing_that_the_next_cannot_finish(spark: SparkSession, tmp_path: Path) -> None:
    unharmed, harmed = Lake(spark, tmp_path / "unharmed"), Lake(spark, tmp_path / "harmed")
    put([unharmed, harmed], next(Archives(8, events=20).runs()))
    unharmed.compact()
    command = [sys.executable, "-m", "glue_jobs.compact.main", "--store", str(harmed.root), *QUICK_ARGUMENTS]
    where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "layers/common/python")])}
    with subprocess.Popen(
        command, cwd=ROOT, env=where, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as dying:
        assert dying.stderr
        try:
            for told in dying.stderr:
                if "writing" in told and "events" in told:
                    break
        finally:
            os.killpg(dying.pid, signal.SIGKILL)
        dying.stderr.close()
        assert dying.wait() == -signal.SIGKILL
    assert harmed.edition.number == 0
    assert harmed.compact().outcome == PUBLISHED
    assert tables(harmed) == tables(unharmed)


def test_the_job_compacts_sweeps_lists_the_files_for_athena_and_registers_iceberg_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path / "lake")
    put([lake], next(Archives(9, events=10).runs()))
    left = lake.root / "lake/runs/0000000000-dead/events/part-0.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    where = ["--store", str(lake.root), *QUICK_ARGUMENTS]
    assert main([*where, "--JOB_NAME", "compact", "--local", "true"]) == 0
    assert not left.exists()
    listed = (lake.root / "lake/athena/events/files.txt").read_text().split()
    assert listed == [f"{lake.root.as_uri()}/{file}" for file in lake.edition.files(EVENTS)]
    before = tables(lake)
    assert iceberg(lake) == before
    (lake.root / CATALOG_FILE).unlink()
    assert main(where) == 0
    assert tables(lake) == iceberg(lake) == before, "a catalog that is lost is made anew"


def iceberg(lake: Lake) -> dict[str, list[Row]]:
    """What pyiceberg reads, seen by DuckDB through Arrow; pyiceberg and the page agree about the columns."""
    found = {}
    with iceberg_tables(str(lake.root), lake.objects, {}) as shown:
        for table in (EVENTS, STATISTICS, TRANSCRIPTS):
            read = shown.catalog.load_table((shown.namespace, table))
            described = [(column.name, column.meaning) for column in TABLES[table]]
            assert [(field.name, field.doc) for field in read.schema().fields] == described
            rows = read.scan().to_arrow()
            assert rows.schema.names == [name for name, _ in described]
            found[table] = told_of(table, partial(_arrow, rows=rows))
    return found


def _arrow(database: duckdb.DuckDBPyConnection, rows: Any) -> Any:
    return database.from_arrow(rows)
