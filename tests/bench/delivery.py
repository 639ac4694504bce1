"""Delivery from a local journal: events a second beside a bare loop with like batches, and the cost of selection."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import urllib3

from millrace.delivery.application.dispatch import Dispatch
from millrace.delivery.domain.addresses import Reach
from millrace.delivery.domain.events import captured
from millrace.delivery.domain.families import Families
from millrace.delivery.domain.states import Status
from millrace.delivery.domain.targets import BATCH_PATH, MOST_EVENTS, Target
from millrace.delivery.receivers.inbox import StubInbox
from millrace.delivery.receivers.outbound import Outbound
from millrace.delivery.receivers.posting import BATCH_HEADERS
from millrace.delivery.receivers.stub import Stub, stub_at
from millrace_client.commands.stub import serve
from millrace_client.journal.capture import Capture
from millrace_client.journal.session import now_ms
from millrace_client.journal.sqlite.database import Database
from millrace_client.journal.sqlite.journal import SqliteJournal
from millrace_client.journal.sqlite.ledger import LEDGER, SqliteLedger
from millrace_client.journal.sqlite.targets import SqliteTargets
from tests.bench.events import items
from tests.bench.report import Figure, Section, Table, at_most

EVENTS = 10_000
REPETITIONS = 3
RETAINED = (1_000, 100_000)
SELECTED = 100
TARGET = Target("bench", "stub")
BARE = "bare loop, batches of the same size"
DRAIN = "drain, with journal and ledger"
CAPTURE = f"capture, {MOST_EVENTS} in a transaction"


def run() -> Section:
    drains = drain_rows()
    selections = selection_rows()
    return Section(
        [
            Table("drain", f"Drain of {EVENTS:,} events to a receiver on this machine, best of {REPETITIONS}", drains),
            Table("selection", f"One selection of {SELECTED} events by what the journal retains", selections),
        ],
        [grows(selections)],
    )


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds by the wall, and of this process's CPU."""

    wall: float
    cpu: float


def drain_rows() -> list[dict[str, Any]]:
    """In turns, so that all meet the same machine."""
    taken: dict[str, list[Took]] = {BARE: [], DRAIN: [], CAPTURE: []}
    with receiver() as url:
        for repetition in range(REPETITIONS):
            taken[BARE].append(_bare_loop(url, events(EVENTS, 2 * repetition)))
            with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "journal.db") as database:
                taken[CAPTURE].append(_capture(database, events(EVENTS, 2 * repetition + 1)))
                taken[DRAIN].append(_drain(database, url))
    best = {what: Took(min(one.wall for one in all_), min(one.cpu for one in all_)) for what, all_ in taken.items()}
    return [
        {
            "what": what,
            "events a second": round(EVENTS / took.wall),
            "time beside the loop": round(took.wall / best[BARE].wall, 2),
            "CPU µs per event": round(took.cpu / EVENTS * 1e6, 1),
        }
        for what, took in best.items()
    ]


def selection_rows(retained: Sequence[int] = RETAINED) -> list[dict[str, Any]]:
    rows = []
    for count in retained:
        with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "journal.db") as database:
            _capture(database, events(count, 0))
            SqliteTargets(database).add(TARGET, now_ms())
            inbox = StubInbox()
            Dispatch(SqliteLedger(database), SqliteTargets(database), now_ms, lambda: 0.5)(TARGET, Stub(inbox, now_ms))
            _capture(database, events(SELECTED, 1))
            steps, seconds = _select(database)
        rows.append({"retained": count, "steps of SQLite": steps, "CPU ms": round(seconds * 1000, 2)})
    return rows


def grows(rows: Sequence[dict[str, Any]]) -> Figure:
    few, many = rows[0]["steps of SQLite"], rows[-1]["steps of SQLite"]
    return at_most(f"selection at {rows[-1]['retained']:,} retained beside {rows[0]['retained']:,}", 1.05, many / few)


def events(count: int, seed: int) -> list[bytes]:
    return [
        json.dumps({"event_id": item["id"], "event_type": "order", "payload": item["event"]}).encode()
        for item in items("realistic", count, (seed + 50) * 1_000_000)
    ]


@contextmanager
def receiver() -> Iterator[str]:
    """A stub in a process of its own, so that it shares nothing with what is measured."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection) -> None:
    with serve(StubInbox()) as server:
        pipe.send(server.server_port)
        server.serve_forever()


def _bare_loop(url: str, bodies: Sequence[bytes]) -> Took:
    pool = urllib3.PoolManager()
    timer = _timer()
    for first in range(0, len(bodies), MOST_EVENTS):
        batch = b'{"events":[' + b",".join(bodies[first : first + MOST_EVENTS]) + b"]}"
        answer = pool.request("POST", url + BATCH_PATH, body=gzip.compress(batch, 6), headers=BATCH_HEADERS)
        assert len(json.loads(answer.data)["results"]) == min(MOST_EVENTS, len(bodies) - first)
    took = timer()
    pool.clear()
    return took


def _capture(database: Database, bodies: Sequence[bytes]) -> Took:
    capture = Capture(SqliteJournal(database), Families(), now_ms)
    timer = _timer()
    for first in range(0, len(bodies), MOST_EVENTS):
        capture([captured(body) for body in bodies[first : first + MOST_EVENTS]])
    return timer()


def _drain(database: Database, url: str) -> Took:
    SqliteTargets(database).add(TARGET, now_ms())
    stub = Stub(stub_at(url, Outbound(Reach(public=False, loopback=True))), now_ms)
    timer = _timer()
    drained = Dispatch(SqliteLedger(database), SqliteTargets(database), now_ms, lambda: 0.5)(TARGET, stub)
    took = timer()
    assert drained.counts == {Status.SUCCESS: EVENTS}
    return took


def _select(database: Database) -> tuple[int, float]:
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    ledger = SqliteLedger(database)
    database.connection.set_progress_handler(count, 1)
    chosen = ledger.select(TARGET, LEDGER, now_ms(), MOST_EVENTS, 1024 * 1024)
    database.connection.set_progress_handler(None, 0)
    assert len(chosen.picks) == SELECTED
    timer = _timer()
    ledger.select(TARGET, LEDGER, now_ms(), MOST_EVENTS, 1024 * 1024)
    return counted, timer().cpu


def _timer() -> Callable[[], Took]:
    wall, cpu = time.perf_counter(), time.process_time()
    return lambda: Took(time.perf_counter() - wall, time.process_time() - cpu)
