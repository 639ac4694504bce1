"""Open tables: one contract for memory, for Iceberg in a directory and for Iceberg in the Glue Data Catalog (C9)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest

from glue_jobs.columns import TABLES
from millrace.lake.adapters.directory_objects import DirectoryObjects
from millrace.lake.adapters.iceberg_catalog import iceberg_tables
from millrace.lake.adapters.iceberg_tables import IcebergTables
from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.adapters.memory.open_tables import MemoryOpenTables
from millrace.lake.adapters.store import open_objects
from millrace.lake.domain.edition import EVENTS
from millrace.lake.ports.objects import Objects
from millrace.lake.ports.open_tables import OpenTables
from tests.support.parquet import file_of

FAR = 1 << 42
"""A time that is later than any."""
FILES = {f"lake/runs/r{rows}/events/part.parquet": rows for rows in (1, 2, 3)}
ONE, TWO, THREE = FILES


@dataclass
class Place:
    objects: Objects
    tables: OpenTables


@pytest.fixture(params=["memory", "directory", "embedded"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "memory":
        yield Place(MemoryObjects(), MemoryOpenTables(FILES.__getitem__))
        return
    database = f"lake_{uuid.uuid4().hex[:12]}"
    if request.param == "directory":
        store, settings = str(tmp_path), {}
        objects: Objects = DirectoryObjects(tmp_path)
    else:
        settings = {
            "endpoint_url": request.getfixturevalue("endpoint"),
            "region_name": "us-east-1",
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
        }
        bucket = database.replace("_", "-")
        boto3.client("s3", **settings).create_bucket(Bucket=bucket)
        store = f"s3://{bucket}/below"
        objects = open_objects(store, **settings)
    for name, rows in FILES.items():
        objects.put(name, file_of(EVENTS, rows))
    with iceberg_tables(store, objects, TABLES, database, **settings) as tables:
        yield Place(objects, tables)


def test_a_table_is_made_when_it_is_first_shown_and_then_has_exactly_the_files_of_the_last_show(place: Place) -> None:
    tables = place.tables
    assert tables.shown(EVENTS) is None
    assert tables.show(EVENTS, None, [ONE, TWO], "run-1")
    first = tables.shown(EVENTS)
    assert first
    assert (first.files, first.rows, first.run) == (frozenset({ONE, TWO}), 3, "run-1")
    assert tables.show(EVENTS, first, [TWO, THREE], "run-2")
    second = tables.shown(EVENTS)
    assert second
    assert (second.files, second.rows, second.run) == (frozenset({TWO, THREE}), 5, "run-2")
    assert second == tables.shown(EVENTS)


def test_a_table_may_lose_all_its_files_and_get_some_again(place: Place) -> None:
    tables = place.tables
    for number, files in enumerate(([], [ONE], [], [TWO])):
        assert tables.show(EVENTS, tables.shown(EVENTS), files, f"run-{number}")
        shown = tables.shown(EVENTS)
        assert shown
        assert (shown.files, shown.rows) == (frozenset(files), sum(FILES[file] for file in files))


def test_who_saw_something_older_changes_nothing(place: Place) -> None:
    tables = place.tables
    assert tables.show(EVENTS, None, [ONE], "run-1")
    first = tables.shown(EVENTS)
    assert tables.show(EVENTS, first, [TWO], "run-2")
    now = tables.shown(EVENTS)
    assert not tables.show(EVENTS, first, [THREE], "late")
    assert not tables.show(EVENTS, None, [THREE], "late")
    assert tables.shown(EVENTS) == now


def test_of_several_that_change_a_table_at_once_one_does(place: Place) -> None:
    tables = place.tables
    assert tables.show(EVENTS, None, [ONE], "run-1")
    over = tables.shown(EVENTS)
    with ThreadPoolExecutor(4) as pool:
        shown = list(pool.map(lambda n: tables.show(EVENTS, over, [ONE, (TWO, THREE)[n % 2]], f"run-{n}"), range(4)))
    assert shown.count(True) == 1
    now = tables.shown(EVENTS)
    assert now
    assert now.run == f"run-{shown.index(True)}"


def test_what_is_forgotten_was_seen_before_and_what_is_seen_now_stays(place: Place) -> None:
    tables = place.tables
    assert tables.forget(EVENTS, FAR) == 0
    for number, file in enumerate(FILES):
        assert tables.show(EVENTS, tables.shown(EVENTS), [file], f"run-{number}")
    now = tables.shown(EVENTS)
    assert tables.forget(EVENTS, 0) == 0
    assert tables.shown(EVENTS) == now
    assert tables.forget(EVENTS, FAR) > 0
    after = tables.shown(EVENTS)
    assert after
    assert now
    assert (after.files, after.rows, after.run) == (now.files, now.rows, now.run)
    if isinstance(tables, IcebergTables):
        table = tables.catalog.load_table((tables.namespace, EVENTS))
        assert len(table.snapshots()) == 1
        assert table.scan().count() == 3, "the metadata that is left is whole"
