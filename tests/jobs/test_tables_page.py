"""docs/tables.md: its DuckDB queries, its examples in Python and Spark and its JSON run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from glue_jobs.columns import TABLES
from millrace.lake.adapters.iceberg_catalog import iceberg_tables
from millrace.lake.application.follow_edition import FollowEdition
from millrace.lake.domain.edition import PUBLISHED
from millrace.lake.domain.registry import FALLBACK, Registry
from millrace.lake.domain.retention import RetentionRequest
from millrace.realtime.domain.transcript import FINAL
from tests.jobs.lake import Lake, line

PAGE = (Path(__file__).parents[2] / "docs/tables.md").read_text()
SYNC = "sync#default#demo"


def blocks(language: str, heading: str) -> list[str]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def test_the_queries_and_the_spark_example_give_what_was_archived(spark: SparkSession, tmp_path: Path) -> None:
    """C9."""
    lake = Lake(spark, tmp_path)
    for first in (1, 3):
        events = [line(SYNC, f"k{n}", n, payload={"event": {"payload": {"n": n}}}) for n in (first, first + 1)]
        lake.archive(events)
        lake.compact()
    with duckdb.connect() as database:
        queries = [block.replace("STORE/", f"{tmp_path}/") for block in blocks("sql", "Query with DuckDB alone")]
        answers = [database.execute(query).fetchall() for query in queries]
    assert answers[0] == [("sync.set", 4, 4)]
    assert answers[1] == [(n, f"k{n}", str(n)) for n in range(1, 5)]
    assert [(row[0], row[2]) for row in answers[2]] == [(SYNC, 4)]
    with iceberg_tables(str(tmp_path), lake.objects, TABLES) as tables:
        FollowEdition(lake.objects, tables)()
    table, counted, *_ = blocks("python", "Query with Python")
    found: dict[str, Any] = {}
    exec((table + counted).replace("STORE", str(tmp_path)), found)
    found["catalog"].close()
    assert found["by_type"] == [("sync.set", 4)]
    assert found["rows"].column_names == ["sequence_position", "event_type"]
    (example,) = blocks("python", "Query with Spark")
    names: dict[str, Any] = {"spark": spark}
    exec(example.replace("STORE", str(tmp_path)), names)
    assert [row["sequence_position"] for row in names["events"].collect()] == [1, 2, 3, 4]


def test_every_table_is_written_with_the_columns_the_page_and_athena_state(spark: SparkSession, tmp_path: Path) -> None:
    """C9."""
    lake = Lake(spark, tmp_path)
    spoken = {"utteranceId": "u", "speaker": "user", "text": "t", "startMs": 0, "endMs": 1}
    told = {"type": FINAL, "eventId": "e", "ts": "2026-02-01T10:00:00Z", "payload": spoken}
    lake.archive([line("realtime#acme#s", "e", 1, payload=told, event_type=f"realtime.{FINAL}")])
    lake.compact()
    for table in PUBLISHED:
        written = spark.read.parquet(*(str(tmp_path / file) for file in lake.edition.files(table)))
        assert written.dtypes == [(column.name, column.kind) for column in TABLES[table]]
        (listed,) = re.findall(rf"CREATE EXTERNAL TABLE millrace_{table} \((.*?)\)\n", PAGE, re.DOTALL)
        assert " ".join(listed.split()) == ", ".join(f"{name} {kind}" for name, kind in written.dtypes)


def test_the_json_on_the_page_is_understood() -> None:
    (registry,) = blocks("json", "Versions")
    assert Registry.parse(registry.encode()).types["order.placed"].policy == FALLBACK
    (request,) = blocks("json", "Run the jobs")
    assert [release.watermark for release in RetentionRequest.parse(request.encode()).ledgers.values()] == [0, 77]
