"""A lake in a directory for tests: archive objects go in, tables come out, through DuckDB because it starts at once."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from glue_jobs.compact.run import Compact, CompactionReport
from glue_jobs.workspace import DirectWorkspace, Workspace
from millrace.lake.adapters.directory_objects import DirectoryObjects
from millrace.lake.application.editions import Editions
from millrace.lake.domain.archive import EventWriter, sortable_time
from millrace.lake.domain.edition import EVENTS, STATISTICS, TRANSCRIPTS, Edition
from millrace.lake.domain.registry import Registry

NOW = 1_770_000_000_000
Row = dict[str, Any]

TABLES = {
    EVENTS: "SELECT * EXCLUDE (occurred_at, committed_at), epoch_us(occurred_at) AS occurred_us, "
    "epoch_ms(committed_at) AS committed_ms FROM rows",
    TRANSCRIPTS: "SELECT * FROM rows",
    STATISTICS: "SELECT ledger, strftime(day, '%Y-%m-%d') AS day, events, payload_bytes, first_position, last_position "
    "FROM rows",
}


@dataclass
class Lake:
    spark: SparkSession
    root: Path
    registry: Registry = field(default_factory=Registry)
    runs: Iterable[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.objects = DirectoryObjects(self.root)
        self.workspace: Workspace = DirectWorkspace(self.objects, self.objects.root.as_uri() + "/")
        self._runs = iter(self.runs)

    def new_run(self) -> str:
        number = next(self._runs)
        return f"{sortable_time(NOW + number)}-{number:04}"

    def compact(self, **changes: Any) -> CompactionReport:
        settings = {"workspace": self.workspace, "registry": self.registry, "new_run": self.new_run}
        return Compact(lambda _: self.spark, clock=lambda: NOW, **{**settings, **changes})()

    def archive(self, lines: Sequence[Row]) -> str:
        writer = EventWriter()
        for line in lines:
            writer.add_line(line)
        made = writer.finish()
        self.objects.put(made.name, made.data)
        return made.name

    def archive_raw(self, name: str, lines: Sequence[bytes]) -> str:
        return self.archive_bytes(name, gzip.compress(b"".join(line + b"\n" for line in lines), mtime=0))

    def archive_bytes(self, name: str, data: bytes) -> str:
        assert self.objects.put(f"ledger/{name}", data)
        return f"ledger/{name}"

    @property
    def edition(self) -> Edition:
        return Editions(self.objects).current().edition

    def table(self, name: str, edition: Edition | None = None) -> list[Row]:
        """Rows in a total order, as they are in the files."""
        files = [str(self.root / file) for file in (edition or self.edition).files(name)]
        return rows_of(name, files)

    def quarantine(self) -> list[Row]:
        found = []
        for file in self.edition.files("quarantine"):
            stored = self.objects.get(file)
            assert stored
            found += [json.loads(line) for line in gzip.decompress(stored.data).splitlines()]
        return sorted(found, key=lambda one: one["id"])


def rows_of(table: str, files: Sequence[str]) -> list[Row]:
    return told_of(table, lambda database: database.read_parquet(list(files))) if files else []


def told_of(table: str, relation: Callable[[duckdb.DuckDBPyConnection], Any]) -> list[Row]:
    """The rows of whatever DuckDB can read: files, or a table of Arrow."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        rows = relation(database)  # noqa: F841 -- the query names it
        answer = database.execute(TABLES[table])
        names = [column[0] for column in answer.description or []]
        found = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True, default=str))


def line(ledger: str, key: str, position: int | None = None, **changes: Any) -> Row:
    """A line of the catalog or of a wrapped contract, good unless changed."""
    contract, tenant = ledger.split("#")[:2]
    content: Row = {
        "committed_at": NOW,
        "ledger": ledger,
        "tenant": tenant,
        "partitions": [],
        "event_type": "order.placed" if contract == "catalog" else f"{contract}.set",
        "event_version": 2 if contract == "streams" else 1,
        "idempotency_key": key,
        "occurred_at": "2026-02-01T10:00:00Z",
        "source": "tests",
        "payload": {"key": key},
    }
    if position is not None:
        content["sequence_position"] = position
    return {**content, **changes}
