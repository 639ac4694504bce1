"""Segments: tables as files that never change, and the folding of small ones into larger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pyarrow.fs import FileSystem
from pyarrow.parquet import read_metadata
from pyspark.sql import DataFrame, SparkSession

from glue_jobs.columns import SCHEMAS
from glue_jobs.compact.tables import ORDER, added_up, best_of_each_utterance, in_order
from glue_jobs.literal import literal_rows
from glue_jobs.workspace import Workspace
from millrace.lake.domain import edition as names
from millrace.lake.domain.edition import FAN_IN, Edition, File, Segment, run_folder, to_fold

FILE_BYTES = 128 * 1024 * 1024
"""A Parquet file that readers like; smaller ones are folded as they add up."""
RAW_PER_BYTE = 4
"""Line bytes that become one byte of Parquet, roughly; it only decides how many files are written."""
KEYS_PER_FILE = 4_000_000

Combine = Callable[[DataFrame], DataFrame]


def _as_they_are(rows: DataFrame) -> DataFrame:
    return rows


COMBINED: Mapping[str, Combine] = {
    names.EVENTS: _as_they_are,
    names.KEYS: _as_they_are,
    names.TRANSCRIPTS: best_of_each_utterance,
    names.STATISTICS: added_up,
    names.PRUNED: _as_they_are,
}


@dataclass(frozen=True, slots=True)
class Segments:
    """Writes one run's segments. `tell` is told before each piece of long work."""

    spark: SparkSession
    workspace: Workspace
    run: str
    tell: Callable[[str], None]
    fan_in: int = FAN_IN

    def write(self, table: str, rows: DataFrame, files: int, part: str = "") -> Segment:
        """The rows in about so many files; events in their order, keys drawer by drawer."""
        folder = run_folder(self.run, table + part)
        if table == names.EVENTS:
            spread = rows.repartition(1) if files <= 1 else rows.repartitionByRange(files, *ORDER[:2])
            laid_out = spread.sortWithinPartitions(*in_order())
        elif table == names.KEYS:
            spread = rows.repartition(1) if files <= 1 else rows.repartitionByRange(files, "drawer", "key")
            laid_out = spread.sortWithinPartitions("drawer", "key")
        else:
            laid_out = rows.repartition(max(files, 1))
        laid_out.write.parquet(self.workspace.output(folder))
        written = self.workspace.written(folder)
        return Segment(self.run, rows_in(self.workspace.paths(written)), written)

    def write_text(self, table: str, lines: DataFrame, rows: int) -> Segment:
        """As many lines as the caller says there are."""
        folder = run_folder(self.run, table)
        lines.repartition(1).write.option("compression", "gzip").text(self.workspace.output(folder))
        written = self.workspace.written(folder)
        return Segment(self.run, rows, written)

    def read(self, table: str, files: Iterable[File]) -> DataFrame:
        return read_files(self.spark, self.workspace, table, files)

    def put(self, table: str, name: str, data: bytes, rows: int) -> Segment:
        """A segment of one small object that needs no Spark."""
        file = run_folder(self.run, table) + name
        self.workspace.objects.put(file, data)
        return Segment(self.run, rows, (File(file, len(data)),))

    def folded(self, edition: Edition) -> Edition:
        """Where a tier of a table is full, its segments become one."""
        for table, combine in COMBINED.items():
            step = 0
            while full := to_fold(edition.segments(table), self.fan_in):
                step += 1
                self.tell(f"folding {len(full)} segments of {table}")
                files = tuple(file for segment in full for file in segment.files)
                count = _files(table, sum(segment.rows for segment in full), sum(file.size for file in files))
                merged = self.write(table, combine(self.read(table, files)), count, f"-folded-{step}")
                kept = [segment for segment in edition.segments(table) if segment not in full]
                edition = edition.having(table, [*kept, merged])
        return edition


def read_files(spark: SparkSession, workspace: Workspace, table: str, files: Iterable[File]) -> DataFrame:
    """Rows of a table's files, with the table's schema even if there are none."""
    paths = workspace.paths(files)
    schema = SCHEMAS[table]
    return spark.read.schema(schema).parquet(*paths) if paths else literal_rows(spark, [], schema)


def rows_in(paths: Iterable[str]) -> int:
    """How many rows these files have, by their footers: what was written is looked at, and no Spark job is needed."""
    places = [FileSystem.from_uri(path) for path in paths]
    return sum(read_metadata(place, filesystem=system).num_rows for system, place in places)


def event_files(line_bytes: int) -> int:
    return -(-line_bytes // (FILE_BYTES * RAW_PER_BYTE))


def key_files(rows: int) -> int:
    return -(-rows // KEYS_PER_FILE)


def _files(table: str, rows: int, size: int) -> int:
    return key_files(rows) if table == names.KEYS else -(-size // FILE_BYTES)
