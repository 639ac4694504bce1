"""The tables (C9): what a row of each is, made from events, and how the segments of a table add up to it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from glue_jobs.columns import TABLES
from glue_jobs.compact.parse import short_numbers
from millrace.lake.domain import edition as names
from millrace.realtime.domain.transcript import FINAL, PARTIAL

ORDER = ("ledger", "sequence_position", "archive_object", "occurred_at", "idempotency_key")
TIES = ("payload", "event_type", "event_version", "committed_at", "source", "trace_id", "client_id", "partitions")
"""Two lines that differ in none of these are the same line."""
SECONDS_BEFORE_1970 = 62_135_596_800


def in_order() -> list[Column]:
    """C4: by position, else by the object's name, else by time."""
    return [F.col("ledger"), F.col("sequence_position").asc_nulls_last(), *(F.col(name) for name in ORDER[2:])]


def event_rows(accepted: DataFrame) -> DataFrame:
    """Parsed and accepted lines as rows of the events table."""
    return accepted.select(
        *(F.expr(column.made or column.name).cast(column.kind).alias(column.name) for column in TABLES[names.EVENTS])
    )


def is_spoken() -> Column:
    """Whether an event may tell an utterance."""
    return (F.col("contract") == "realtime") & F.col("event_type").isin(_wrapped(PARTIAL), _wrapped(FINAL))


def transcript_rows(events: DataFrame) -> DataFrame:
    """R8: of each utterance the event that tells it best, by the rule of `millrace.realtime.domain.transcript`."""
    body = "type string, eventId string, ts string, payload struct<utteranceId:string, speaker:string, text:string, \
startMs:string, endMs:string>"
    has_utterance = F.col("b.payload.utteranceId").isNotNull()
    with_short_numbers = F.from_json(short_numbers(F.col("payload")), body)
    spoken = (
        events.where(is_spoken())
        .select("ledger", "tenant", "sequence_position", "payload", F.from_json("payload", body).alias("b"))
        .withColumn("b", F.when(has_utterance, F.col("b")).otherwise(with_short_numbers))
        .where(has_utterance)
    )
    return best_of_each_utterance(
        spoken.select(
            "ledger",
            "tenant",
            F.col("b.payload.utteranceId").alias("utterance_id"),
            F.col("b.payload.speaker").alias("speaker"),
            F.col("b.payload.text").alias("text"),
            _whole(F.col("b.payload.startMs")).alias("start_ms"),
            _whole(F.col("b.payload.endMs")).alias("end_ms"),
            (F.col("b.type") == FINAL).alias("final"),
            F.col("b.eventId").alias("event_id"),
            "sequence_position",
            F.col("b.ts").alias("ts"),
            _rank(F.col("b.type") == FINAL, F.col("b.ts"), F.col("b.eventId")).alias("rank"),
        )
    )


def best_of_each_utterance(rows: DataFrame) -> DataFrame:
    """Of each utterance the row with the greatest `rank`."""
    rest = [F.col(name) for name in rows.columns if name not in ("ledger", "utterance_id")]
    best = rows.groupBy("ledger", "utterance_id").agg(F.max_by(F.struct(*rest), "rank").alias("best"))
    return best.select("ledger", "utterance_id", "best.*").select(*rows.columns)


def statistic_rows(events: DataFrame) -> DataFrame:
    """Per ledger and UTC day of commit."""
    counted = events.withColumn("day", F.to_date("committed_at")).groupBy("ledger", "contract", "tenant", "day")
    return counted.agg(
        F.count("*").alias("events"),
        F.sum(F.octet_length("payload")).alias("payload_bytes"),
        F.min("sequence_position").alias("first_position"),
        F.max("sequence_position").alias("last_position"),
        F.min("committed_at").alias("first_committed_at"),
        F.max("committed_at").alias("last_committed_at"),
    )


def added_up(statistics: DataFrame) -> DataFrame:
    """The statistics of several segments as one."""
    return statistics.groupBy("ledger", "contract", "tenant", "day").agg(
        F.sum("events").alias("events"),
        F.sum("payload_bytes").alias("payload_bytes"),
        F.min("first_position").alias("first_position"),
        F.max("last_position").alias("last_position"),
        F.min("first_committed_at").alias("first_committed_at"),
        F.max("last_committed_at").alias("last_committed_at"),
    )


def first_of_each_key(gated: DataFrame) -> DataFrame:
    """C4: adds `first`, true for the one accepted line of each key that counts; the order is total."""
    order = [
        F.when(F.col("status") == "accepted", 0).otherwise(1),
        F.col("sequence_position").asc_nulls_last(),
        F.col("object"),
        F.col("occurred_at"),
        *(F.col(name) for name in TIES),
    ]
    rank = F.row_number().over(Window.partitionBy("key").orderBy(*order))
    return gated.withColumn("first", (rank == 1) & (F.col("status") == "accepted"))


def _wrapped(event_type: str) -> str:
    return f"realtime.{event_type}"


def _rank(final: Column, ts: Column, event_id: Column) -> Column:
    """Finals above partials, then the later instant, to the nanosecond, then the greater event id, as one text.

    A timestamp would lose the last three digits. Seconds count from year 1, so that they are never negative.
    """
    seconds = F.unix_timestamp(F.to_timestamp(F.substring(ts, 1, 19))) + SECONDS_BEFORE_1970
    fraction = F.rpad(F.regexp_extract(ts, r"\.([0-9]+)", 1), 9, "0")
    return F.concat(F.when(final, "1").otherwise("0"), F.lpad(seconds.cast("string"), 12, "0"), fraction, event_id)


def _whole(number: Column) -> Column:
    """A time sent as 1.0 or 1e3 is an integer too; one beyond 64 bits is null."""
    return number.cast("decimal(38,6)").cast("long")
