"""`make bench-lake`: compaction beside DuckDB on the same archive, its growth, an incremental run, and retention.

Every measurement is a process of its own, so that its CPU time and peak memory are its own (Java's included).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console

from tests.bench.lake_work import WORK
from tests.bench.report import Figure, Section, Table, at_most, show

RESULTS = Path(__file__).with_name("lake.json")
ROOT = Path(__file__).parents[2]
EVENTS_PER_OBJECT = 5_000
GOALS = {500_000: 40, 2_000_000: 75}
"""CPU seconds."""

LINES = """
SELECT '{"committed_at":' || (1770000000000 + n * 20)::VARCHAR || ',"ledger":"' || ledger || '","tenant":"acme",'
    || '"partitions":["p' || n %% 7 || '","q' || n %% 5 || '"],"client_id":"c' || n %% 100 || '","event_type":"'
    || CASE WHEN n %% 100 = 0 THEN 'order.placed","event_version":9' ELSE 'order.placed","event_version":1' END
    || ',"idempotency_key":"' || key || '","occurred_at":"2026-02-02T02:40:00.' || lpad((n %% 1000)::VARCHAR, 3, '0')
    || 'Z","source":"bench","sequence_position":' || p::VARCHAR || ',"payload":{"id":"' || md5(key) || '","text":"'
    || md5(key || 'a') || md5(key || 'b') || md5(key || 'c') || '","n":' || n || '}}' AS line
FROM (SELECT n, 'catalog#acme#orders' || {place} AS ledger, 'order-' || md5(p::VARCHAR) AS key, p
    FROM (SELECT n, CASE WHEN n %% 20 = 19 THEN n - 19 ELSE n END + 1 AS p FROM range(%d, %d) t(n)))
"""
"""About 0.5 KB each; each twentieth repeats an earlier one (5 %), each hundredth has an unknown version (1 %)."""
EVEN, SKEWED = "p %% 20", "CASE WHEN p %% 2 = 0 THEN 0 ELSE p %% 20 END"
"""Twenty ledgers alike, or half of all events in one of them."""


def generate(store: Path, first: int, last: int, place: str = EVEN) -> int:
    """Archive objects with the events of these numbers; returns their bytes as text."""
    folder = store / "ledger"
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    with duckdb.connect() as database:
        for start in range(first, last, EVENTS_PER_OBJECT):
            name = folder / f"{start:010}-{0:032}.jsonl.gz"
            query = LINES.replace("{place}", place) % (start, min(start + EVENTS_PER_OBJECT, last))
            size = database.execute(f"SELECT sum(strlen(line) + 1) FROM ({query})").fetchone()
            total += size[0] if size else 0
            options = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01', COMPRESSION gzip"
            database.execute(f"COPY ({query}) TO '{name}' ({options})")
    return total


def measured(work: str, **settings: Any) -> dict[str, Any]:
    """One piece of work in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.lake", "--work", work, "--settings", json.dumps(settings)]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "layers/common/python")])
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stderr[-4000:])
        raise SystemExit(f"{work} failed")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def do(work: str, settings: dict[str, Any]) -> None:
    start = time.perf_counter()
    answer = WORK[work](**settings)
    jvm = answer.pop("jvm", None)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    if jvm:
        fields = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()
        cpu += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        status = Path(f"/proc/{jvm}/status").read_text()
        peak += int(status.partition("VmHWM:")[2].split()[0]) / 1024
    seconds = answer.pop("seconds", None) or time.perf_counter() - start
    print(json.dumps({**answer, "seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1), "peak_mb": round(peak)}))


def compaction(scratch: Path, sizes: list[int], baseline: int, rounds: int) -> tuple[Table, list[Figure]]:
    """At the baseline DuckDB and a skewed archive of the same size take turns with Spark; of each the median counts."""
    rows: list[dict[str, Any]] = []
    for size in sizes:
        stores = {"compact": scratch / f"lake-{size}"}
        megabytes = generate(stores["compact"], 0, size) / 1e6
        if size == baseline:
            stores |= {"duckdb": stores["compact"], "skewed": scratch / f"skewed-{size}"}
            generate(stores["skewed"], 0, size, SKEWED)
        found: dict[str, list[dict[str, Any]]] = {work: [] for work in stores}
        for _ in range(rounds):
            for work, store in stores.items():
                shutil.rmtree(store / "lake", ignore_errors=True)
                found[work].append(measured("duckdb" if work == "duckdb" else "compact", store=str(store)))
        for work, runs in found.items():
            run = median(runs)
            rate = {"events_per_second": round(size / run["seconds"])}
            rows.append({"work": work, "events": size, "line_mb": round(megabytes), **run, **rate})
        for store in set(stores.values()):
            shutil.rmtree(store)
    return Table("compaction", f"compaction of a fresh archive, and DuckDB; medians of {rounds}", rows), _figures(rows)


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run of the median CPU time, and what all of them took."""
    runs.sort(key=lambda run: run["cpu_seconds"])
    spread = {"cpu_seconds_of_all": " ".join(str(run["cpu_seconds"]) for run in runs)}
    return {**runs[len(runs) // 2], **spread}


def _figures(rows: list[dict[str, Any]]) -> list[Figure]:
    cpu = {(row["work"], row["events"]): row["cpu_seconds"] for row in rows}
    figures = [
        at_most(f"CPU seconds of {events} events", most, cpu["compact", events])
        for events, most in GOALS.items()
        if ("compact", events) in cpu
    ]
    for work, most in (("duckdb", 2.0), ("skewed", 1.3)):
        for events in (events for name, events in cpu if name == work):
            even, other = cpu["compact", events], cpu[work, events]
            ratio = other / even if work == "skewed" else even / other
            names = {"duckdb": "CPU time over DuckDB's", "skewed": "a skewed archive's CPU time over an even one's"}
            figures.append(at_most(f"{names[work]}, {events} events", most, round(ratio, 2)))
    return figures


def incremental(scratch: Path, histories: list[int], new: int, rounds: int) -> tuple[Table, list[Figure]]:
    """The same run on each history in turn, several times over: of each the median counts, since single runs vary."""
    runs: dict[int, list[dict[str, Any]]] = {history: [] for history in histories}
    for history in histories:
        measured("history", store=str(scratch / f"history-{history}"), events=history)
        generate(scratch / f"history-{history}", history * 2, history * 2 + new)
    for _ in range(rounds):
        for history in histories:
            shutil.copytree(scratch / f"history-{history}", scratch / "once")
            runs[history].append(measured("compact", store=str(scratch / "once")))
            shutil.rmtree(scratch / "once")
    rows = []
    for history, found in runs.items():
        rows.append({"history": history, "new": new, **median(found)})
    figures = [
        at_most(f"{what} of {new} new events on {histories[-1]} over that on {histories[0]}", 1.1, round(ratio, 2))
        for what, ratio in (
            ("CPU time", rows[-1]["cpu_seconds"] / rows[0]["cpu_seconds"]),
            ("bytes read", rows[-1]["read_mb"] / rows[0]["read_mb"]),
        )
    ]
    figures.append(at_most(f"CPU seconds of {new} new events on {histories[-1]}", 20, rows[-1]["cpu_seconds"]))
    figures.append(at_most(f"seconds of {new} new events on {histories[-1]}", 10, rows[-1]["seconds"]))
    title = f"an incremental run, the median of {rounds}; of the history only the key index exists"
    return Table("incremental", title, rows), figures


def retention(events: int) -> tuple[Table, list[Figure]]:
    row = {"events": events, **measured("retention", events=events)}
    row["cpu_seconds_per_million"] = round(row["cpu_seconds"] / events * 1e6, 1)
    return Table("retention", "which events of 1 to 8 partitions may go", [row]), []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.lake", description=__doc__)
    parser.add_argument("--sizes", default="500000,2000000", help="events of fresh archives")
    parser.add_argument(
        "--baseline", type=int, default=2_000_000, help="the size at which DuckDB and a skewed archive run too"
    )
    parser.add_argument("--histories", default="1000000,10000000", help="events before the incremental run")
    parser.add_argument("--new", type=int, default=100_000, help="events of the incremental run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each work, in turn")
    parser.add_argument("--retention", type=int, default=5_000_000, help="events for retention")
    parser.add_argument("--only", choices=("compaction", "incremental", "retention"))
    parser.add_argument("--work", choices=WORK, help=argparse.SUPPRESS)
    parser.add_argument("--settings", type=json.loads, default={}, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        do(asked.work, asked.settings)
        return 0
    console = Console(width=150)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    sizes, histories = ([int(size) for size in text.split(",")] for text in (asked.sizes, asked.histories))
    missed = False
    with tempfile.TemporaryDirectory(prefix="bench-lake-") as folder:
        parts: dict[str, Callable[[], tuple[Table, list[Figure]]]] = {
            "compaction": lambda: compaction(Path(folder), sizes, asked.baseline, asked.rounds),
            "incremental": lambda: incremental(Path(folder), histories, asked.new, asked.rounds),
            "retention": lambda: retention(asked.retention),
        }
        for name, run in parts.items():
            if asked.only in (None, name):
                console.rule(name)
                table, figures = run()
                section = Section([table], figures)
                show(console, section)
                results[name] = section.as_json()
                missed = missed or not all(figure.holds for figure in figures)
                RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
