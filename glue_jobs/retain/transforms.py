"""Which events may go (C8, S13), as DataFrames: explode partitions, join watermarks, drop what is blocked."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from glue_jobs.literal import literal_rows
from millrace.lake.domain.retention import WHOLE, RetentionRequest

RELEASE = "ledger string, ceiling bigint, watermark bigint, lowest bigint, highest bigint"
MARK = "ledger string, partition string, own bigint"


def release_rows(spark: SparkSession, request: RetentionRequest) -> DataFrame:
    """(ledger, ceiling, watermark, lowest, highest): a ledger's limit, its watermark, and all its watermarks' range."""
    rows = [
        {
            "ledger": ledger,
            "ceiling": release.limit,
            "watermark": release.watermark,
            "lowest": min([release.watermark, *release.partitions.values()]),
            "highest": release.highest,
        }
        for ledger, release in request.ledgers.items()
    ]
    return literal_rows(spark, rows, RELEASE)


def mark_rows(spark: SparkSession, request: RetentionRequest) -> DataFrame:
    """(ledger, partition, own), for partitions that have a watermark of their own."""
    rows = [
        {"ledger": ledger, "partition": partition, "own": own}
        for ledger, release in request.ledgers.items()
        for partition, own in release.partitions.items()
    ]
    return literal_rows(spark, rows, MARK)


def covered_rows(events: DataFrame, pruned: DataFrame) -> DataFrame:
    """(ledger, covered): the position up to which compaction has everything, what went before included."""
    held = events.select("ledger", F.col("position").alias("first"), F.col("position").alias("last"))
    before = Window.partitionBy("ledger").orderBy("first").rowsBetween(Window.unboundedPreceding, -1)
    so_far = Window.partitionBy("ledger").orderBy("first").rowsBetween(Window.unboundedPreceding, 0)
    gap = F.col("first") > F.coalesce(F.max("last").over(before), F.lit(0)) + 1
    marked = held.unionByName(pruned).withColumn("gap", gap.cast("int"))
    solid = marked.withColumn("gaps", F.sum("gap").over(so_far)).where(F.col("gaps") == 0)
    return solid.groupBy("ledger").agg(F.max("last").alias("covered"))


def may_go_rows(events: DataFrame, releases: DataFrame, marks: DataFrame, covered: DataFrame) -> DataFrame:
    """The events that may go: `Release.allows` over a whole table, and only what compaction has without a hole.

    Below the lowest watermark of a ledger no partition matters; only above it are they taken apart.
    """
    reach = F.least("ceiling", "highest", "covered").alias("reach")
    ledgers = releases.join(covered, "ledger").select("ledger", "watermark", "lowest", reach)
    candidates = events.join(F.broadcast(ledgers), "ledger").where(F.col("position") <= F.col("reach"))
    named = F.when(F.size("partitions") > 0, F.col("partitions")).otherwise(F.array(F.lit(WHOLE)))
    parted = candidates.where(F.col("position") > F.col("lowest")).select(
        "ledger", "position", "watermark", F.explode(named).alias("partition")
    )
    marked = parted.join(F.broadcast(marks), ["ledger", "partition"], "left")
    blocked = marked.where(F.col("position") > F.coalesce("own", "watermark"))
    needed = blocked.select("ledger", "position").distinct()
    return candidates.select(*events.columns).join(needed, ["ledger", "position"], "left_anti")


def spans(rows: DataFrame) -> DataFrame:
    """(ledger, first, last): positions as ranges without holes."""
    unique = rows.select("ledger", "position").distinct()
    island: Column = F.col("position") - F.row_number().over(Window.partitionBy("ledger").orderBy("position"))
    islands = unique.withColumn("island", island).groupBy("ledger", "island")
    return islands.agg(F.min("position").alias("first"), F.max("position").alias("last")).drop("island")
