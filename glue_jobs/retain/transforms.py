"""Which events may go (C8, S13), as DataFrames: explode partitions, join watermarks, collect what is blocked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from glue_jobs.literal import literal_rows
from millrace.domain.retention import IMPLICIT, Policy, Request

POLICY = "ledger string, of string, advance_to bigint, max_age_days bigint, max_events bigint"
DAY_MS = 86_400_000


def policy_rows(spark: SparkSession, policies: Sequence[Policy]) -> DataFrame:
    rows = [{**asdict(policy), "of": policy.partition} for policy in policies]
    return literal_rows(spark, rows, POLICY)


def ceiling_rows(spark: SparkSession, request: Request) -> DataFrame:
    rows = [{"ledger": ledger, "ceiling": position} for ledger, position in request.ceilings.items()]
    return literal_rows(spark, rows, "ledger string, ceiling bigint")


def by_partition(events: DataFrame) -> DataFrame:
    """(ledger, position, time, partition), one row for each partition an event names."""
    named = F.when(F.size("partitions") > 0, F.col("partitions")).otherwise(F.array(F.lit(IMPLICIT)))
    time_ms = F.unix_millis("committed_at")
    return events.select("ledger", "position", time_ms.alias("time_ms"), F.explode(named).alias("partition"))


def watermark_rows(exploded: DataFrame, policies: DataFrame, now_ms: int, *, counted: bool = True) -> DataFrame:
    """(ledger, partition, watermark): how far each partition has advanced by its own policies, or else the ledger's.

    Only policies that count events (`counted`) need each partition's rows in order.
    """
    applies = F.col("of").isNull() | (F.col("of") == F.col("partition"))
    newest = Window.partitionBy("ledger", "partition").orderBy(F.col("position").desc())
    young = F.col("time_ms") >= F.lit(now_ms) - F.col("max_age_days") * DAY_MS
    with_policy = policies.select("ledger").distinct()
    rows = exploded.join(F.broadcast(with_policy), "ledger", "left_semi")
    ranked = rows.withColumn("age_rank", F.row_number().over(newest) if counted else F.lit(0))
    joined = ranked.join(F.broadcast(policies), "ledger").where(applies)
    by_age = F.coalesce(F.min(F.when(young, F.col("position"))) - 1, F.max("position"))
    by_count = F.max(F.when(F.col("age_rank") > F.col("max_events"), F.col("position")))
    marks = joined.groupBy("ledger", "partition", "of", "advance_to", "max_age_days", "max_events").agg(
        F.greatest(
            F.coalesce("advance_to", F.lit(0)),
            F.when(F.col("max_age_days").isNotNull(), by_age).otherwise(0),
            F.coalesce(by_count, F.lit(0)),
        ).alias("mark")
    )
    own_first = F.struct(F.col("of").isNotNull(), F.col("mark"))
    return marks.groupBy("ledger", "partition").agg(F.max_by("mark", own_first).alias("watermark"))


def covered_rows(events: DataFrame, pruned: DataFrame) -> DataFrame:
    """(ledger, covered): the position up to which compaction has everything, what went before included."""
    held = events.select("ledger", F.col("position").alias("first"), F.col("position").alias("last"))
    before = Window.partitionBy("ledger").orderBy("first").rowsBetween(Window.unboundedPreceding, -1)
    so_far = Window.partitionBy("ledger").orderBy("first").rowsBetween(Window.unboundedPreceding, 0)
    gap = F.col("first") > F.coalesce(F.max("last").over(before), F.lit(0)) + 1
    marked = held.unionByName(pruned).withColumn("gap", gap.cast("int"))
    solid = marked.withColumn("gaps", F.sum("gap").over(so_far)).where(F.col("gaps") == 0)
    return solid.groupBy("ledger").agg(F.max("last").alias("covered"))


def may_go_rows(events: DataFrame, watermarks: DataFrame, limits: DataFrame) -> DataFrame:
    """The events that may go. `limits` has (ledger, limit); a ledger that is in neither loses nothing."""
    furthest = watermarks.groupBy("ledger").agg(F.max("watermark").alias("furthest"))
    reach = furthest.join(limits, "ledger").select("ledger", F.least("furthest", "limit").alias("reach"))
    candidates = events.join(F.broadcast(reach), "ledger").where(F.col("position") <= F.col("reach")).drop("reach")
    marked = by_partition(candidates).join(F.broadcast(watermarks), ["ledger", "partition"], "left")
    blocked = marked.where(F.col("watermark").isNull() | (F.col("position") > F.col("watermark")))
    return candidates.join(blocked.select("ledger", "position").distinct(), ["ledger", "position"], "left_anti")


def spans(rows: DataFrame) -> DataFrame:
    """(ledger, first, last): positions as ranges without holes."""
    unique = rows.select("ledger", "position").distinct()
    island: Column = F.col("position") - F.row_number().over(Window.partitionBy("ledger").orderBy("position"))
    islands = unique.withColumn("island", island).groupBy("ledger", "island")
    return islands.agg(F.min("position").alias("first"), F.max("position").alias("last")).drop("island")
