"""The pieces of work that `make bench-lake` measures."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from glue_jobs.arguments import new_run, now_ms, tell
from glue_jobs.columns import SCHEMAS
from glue_jobs.compact.parse import drawer, event_key
from glue_jobs.compact.run import PUBLISHED, Compact
from glue_jobs.compact.write import Segments, key_files
from glue_jobs.literal import literal_rows
from glue_jobs.retain import transforms
from glue_jobs.session import SMALL_BYTES, spark_session
from glue_jobs.store import open_store
from millrace.lake.application.editions import Editions
from millrace.lake.domain.edition import KEYS, PROCESSED, PRUNED, Edition
from millrace.lake.domain.registry import Known, Registry
from millrace.lake.domain.retention import Release, RetentionRequest

REGISTRY = Registry({"order.placed": Known({1: {}})})
MEMORY = os.environ.get("MILLRACE_BENCH_MEMORY", "3g")

DUCKDB = """
CREATE TABLE parsed AS
    SELECT line, object, (line ->> '$.committed_at')::BIGINT AS committed_at, line ->> '$.ledger' AS ledger,
        line ->> '$.tenant' AS tenant, line -> '$.partitions' AS partitions, line ->> '$.client_id' AS client_id,
        line ->> '$.event_type' AS event_type, (line ->> '$.event_version')::BIGINT AS event_version,
        line ->> '$.idempotency_key' AS key, (line ->> '$.occurred_at')::TIMESTAMP AS occurred_at,
        line ->> '$.source' AS source, line ->> '$.trace_id' AS trace_id,
        (line ->> '$.sequence_position')::BIGINT AS position, line -> '$.payload' AS payload
    FROM (SELECT line, filename AS object FROM read_csv('{store}/ledger/*.jsonl.gz', columns = {{'line': 'VARCHAR'}},
        delim = '\x01', quote = '', escape = '', header = false, filename = true));
CREATE TABLE events AS
    SELECT * EXCLUDE line FROM parsed
    WHERE event_version = 1 AND ledger <> '' AND tenant <> '' AND event_type <> '' AND source <> '' AND position > 0
    QUALIFY row_number() OVER (PARTITION BY ledger, key ORDER BY position NULLS LAST, object, occurred_at) = 1;
COPY (SELECT * FROM events ORDER BY ledger, position) TO '{out}/events.parquet' (FORMAT parquet, COMPRESSION zstd);
COPY (SELECT unhex(sha256(ledger || chr(0) || key)[:32]) AS key FROM events)
    TO '{out}/keys.parquet' (FORMAT parquet, COMPRESSION zstd);
COPY (SELECT object, line FROM parsed WHERE event_version <> 1)
    TO '{out}/quarantine.gz' (FORMAT csv, COMPRESSION gzip);
COPY (SELECT ledger, tenant, make_timestamp(committed_at * 1000)::DATE AS day, count(*) AS events,
        sum(strlen(payload::VARCHAR)) AS payload_bytes, min(position), max(position) FROM events GROUP BY ALL)
    TO '{out}/statistics.parquet' (FORMAT parquet, COMPRESSION zstd);
"""
"""The same tables from the same lines, for an archive without damage; transcripts and a checkpoint are left out."""


def _jvm(spark: SparkSession) -> int:
    gateway = spark.sparkContext._gateway
    assert gateway
    return int(gateway.proc.pid)


def compact(store: str) -> dict[str, Any]:
    """From the listing of the archive on; the start of Spark is part of it."""
    start = time.perf_counter()
    sessions = []

    def session(size: int) -> SparkSession:
        sessions.append(spark_session("bench", local=True, memory=MEMORY, small=size <= SMALL_BYTES))
        return sessions[0]

    report = Compact(session, open_store(store), REGISTRY, new_run, now_ms, tell)()
    assert report.outcome == PUBLISHED
    counts = report.edition.counts
    size = sum(file.size for one in report.edition.tables.values() for segment in one for file in segment.files)
    return {
        "new_rows": counts["new"],
        "quarantined": counts["quarantined"],
        "lake_mb": round(size / 1e6, 1),
        "seconds": time.perf_counter() - start,
        "read_mb": _read_mb(_jvm(sessions[0])),
        "jvm": _jvm(sessions[0]),
    }


def _read_mb(jvm: int) -> float:
    """All that Java asked the system to read, from files and sockets, its own classes among it."""
    counted = Path(f"/proc/{jvm}/io").read_text()
    return round(int(counted.partition("rchar:")[2].split()[0]) / 1e6, 1)


def with_duckdb(store: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as database:
        start = time.perf_counter()
        database.execute(DUCKDB.format(store=store, out=folder))
        seconds = time.perf_counter() - start
        counts = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM parsed WHERE event_version <> 1)"
        rows = database.execute(counts).fetchall()[0]
        return {
            "new_rows": rows[0],
            "quarantined": rows[1],
            "lake_mb": round(sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6, 1),
            "seconds": seconds,
        }


def history(store: str, events: int) -> dict[str, Any]:
    """A lake whose key index knows so many events of other positions; nothing else of it is read by a run.

    Ledgers have 50,000 events each: a longer history has more of them, and the new events go to twenty.
    """
    workspace = open_store(store)
    spark = spark_session("bench", local=True, memory=MEMORY)
    ledger = F.concat(F.lit("catalog#acme#orders"), F.floor(F.col("id") / 50_000).cast("string"))
    key = event_key(ledger, F.concat(F.lit("old-"), F.col("id").cast("string")), F.lit(""))
    segments = Segments(spark, workspace, new_run(), tell)
    keys = segments.write(
        KEYS, spark.range(events).select(key.alias("key"), drawer(ledger).alias("drawer")), key_files(events)
    )
    names = gzip.compress(json.dumps([f"ledger/old-{n}.jsonl.gz" for n in range(events // 5_000)]).encode())
    processed = segments.put(PROCESSED, "names.json.gz", names, events // 5_000)
    editions = Editions(workspace.objects)
    edition = Edition(1, segments.run, now_ms()).having(KEYS, [keys]).having(PROCESSED, [processed])
    assert editions.publish(editions.current(), edition)
    return {"jvm": _jvm(spark)}


def retention(events: int) -> dict[str, Any]:
    """Twenty ledgers, events of 1 to 8 of 64 partitions, every partition's watermark somewhere in its ledger."""
    spark = spark_session("bench", local=True, memory=MEMORY)
    position = F.floor(F.col("id") / 20) + 1
    names = F.expr("transform(sequence(1, 1 + CAST(id % 8 AS INT)), n -> concat('p', (id * 7 + n * 13) % 64))")
    made = spark.range(events).select(
        F.concat(F.lit("sync#acme#"), F.col("id") % 20).alias("ledger"),
        position.alias("position"),
        F.array_distinct(names).alias("partitions"),
    )
    with tempfile.TemporaryDirectory() as folder:
        made.write.parquet(f"file://{folder}/events")
        rows = spark.read.parquet(f"file://{folder}/events")
        start = time.perf_counter()
        last = events // 20
        marks = {f"p{name}": last * (name + 60) // 128 for name in range(64)}
        request = RetentionRequest({f"sync#acme#{ledger}": Release(last, 0, marks) for ledger in range(20)})
        releases, mark_rows = transforms.release_rows(spark, request), transforms.mark_rows(spark, request)
        covered = transforms.covered_rows(rows, literal_rows(spark, [], SCHEMAS[PRUNED]))
        going = transforms.may_go_rows(rows, releases, mark_rows, covered).count()
        return {"may_go": going, "seconds": time.perf_counter() - start, "jvm": _jvm(spark)}


WORK: Mapping[str, Callable[..., dict[str, Any]]] = {
    "compact": compact,
    "duckdb": with_duckdb,
    "history": history,
    "retention": retention,
}
