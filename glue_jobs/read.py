"""Read a table as it is now: follow the pointer to a snapshot and add up the table's segments."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from glue_jobs.compact.tables import in_order
from glue_jobs.compact.write import COMBINED, read_files
from glue_jobs.workspace import Workspace
from millrace.lake.application.snapshots import Snapshots
from millrace.lake.domain.snapshot import EVENTS, Snapshot


def read_table(
    spark: SparkSession, workspace: Workspace, table: str, snapshot: Snapshot | None = None, *, ordered: bool = False
) -> DataFrame:
    """`events`, `transcripts` or `statistics`. Give a `snapshot` to read several tables of one moment."""
    if snapshot is None:
        snapshot = Snapshots(workspace.objects).current().snapshot
    files = [file for segment in snapshot.segments(table) for file in segment.files]
    rows = COMBINED[table](read_files(spark, workspace, table, files))
    return rows.orderBy(*in_order()) if ordered and table == EVENTS else rows
