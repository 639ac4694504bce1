"""Read a table as it is now: follow the pointer to an edition and add up the table's segments."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from glue_jobs.compact.tables import in_order
from glue_jobs.compact.write import COMBINED, read_files
from glue_jobs.workspace import Workspace
from millrace.lake.application.editions import Editions
from millrace.lake.domain.edition import EVENTS, Edition


def read_table(
    spark: SparkSession, workspace: Workspace, table: str, edition: Edition | None = None, *, ordered: bool = False
) -> DataFrame:
    """`events`, `transcripts` or `statistics`. Give an `edition` to read several tables of one moment."""
    if edition is None:
        edition = Editions(workspace.objects).current().edition
    files = [file for segment in edition.segments(table) for file in segment.files]
    rows = COMBINED[table](read_files(spark, workspace, table, files))
    return rows.orderBy(*in_order()) if ordered and table == EVENTS else rows
