"""A busy ledger: single events, or small batches, that arrive at random on one ledger, in virtual time.

The code is the hub's own; only storage is a model. Beside it, in the same harness: the optimistic protocol alone, and
the usual transaction of counter, event and dedupe row with the SDK's retries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.application.lead import Lead
from millrace.ledger.application.wait_in_line import WaitInLine
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin
from tests.bench.busy_storage import WRITE_MS, SlowBoard, SlowClaims, SlowLog, SlowRoom, SlowState, Tables, Units
from tests.bench.events import drafts
from tests.bench.report import Figure, Section, Table, at_most, exactly
from tests.bench.virtual_time import VirtualTime

RATES = (1, 5, 20, 100, 500, 1_000, 2_000)
BATCHES = (1, 25)
SECONDS = {1: 60.0, 5: 60.0, 20: 40.0, 100: 20.0}
WARM_MS = 1_000
LIMITS = {1: 2.5, 5: 2.5, 20: 4.0, 100: 4.5, 500: 4.0, 1_000: 4.0, 2_000: 4.0}
LEDGER = Ledger.of("sync", "default", "busy")


@dataclass(slots=True)
class Experiment:
    """Requests arrive at random; each is served by a function instance that is free, or a new one."""

    rate: float
    batch: int
    in_line: bool = True
    evenly: bool = False
    """One after the other, instead of at random."""
    time: VirtualTime = field(init=False)
    tables: Tables = field(default_factory=Tables)
    instances: list[Commit] = field(default_factory=list)
    made: int = 0
    took: list[tuple[float, float]] = field(default_factory=list)
    """When a request came, and how long it took."""
    failed: int = 0

    def __post_init__(self) -> None:
        self.time = VirtualTime(seed=int(self.rate) * 100 + self.batch)

    def run(self) -> Experiment:
        seconds = SECONDS.get(int(self.rate), 10.0)
        at, number = 0.0, 0
        while at < seconds * 1000:
            often = self.rate / self.batch
            at += 1000 / often if self.evenly else self.time.rng.expovariate(often) * 1000
            number += 1
            self.time.spawn(at, lambda number=number: self._request(number))  # type: ignore[misc]
        self.time.run(seconds * 1000 + 60_000)
        return self

    def _request(self, number: int) -> None:
        commit = self.instances.pop() if self.instances else self._instance()
        began = self.time.now_ms
        try:
            commit(LEDGER, request(number, self.batch), Origin(f"client-{number % 50}"))
        except Unavailable:
            self.failed += 1
        else:
            self.took.append((began, self.time.now_ms - began))
        self.instances.append(commit)

    def _instance(self) -> Commit:
        self.made += 1
        time, tables, rng = self.time, self.tables, self.time.rng
        heads, log, state = Heads(time.clock), SlowLog(time, tables), SlowState(time, tables)
        room, board = SlowRoom(time, tables), SlowBoard(time, tables)

        def nonce() -> bytes:
            return rng.randbytes(12)

        def pause(attempt: int) -> None:
            time.wait(rng.uniform(0, min(400, 10 * 2**attempt)))

        def nap(ms: int) -> None:
            time.wait(rng.uniform(0.6, 1.4) * ms)

        lead = Lead(room=room, board=board, log=log, state=state, together=time.together, clock=time.clock, nonce=nonce)  # type: ignore[arg-type]
        line = WaitInLine(room=room, board=board, lead=lead, log=log, heads=heads, clock=time.clock, nap=nap)  # type: ignore[arg-type]
        return Commit(
            claims=SlowClaims(time=time, tables=tables),
            log=log,  # type: ignore[arg-type]
            state=state,  # type: ignore[arg-type]
            heads=heads,
            together=time.together,
            clock=time.clock,
            nonce=nonce,
            pause=pause,
            line=line if self.in_line else None,
        )

    def row(self) -> dict[str, Any]:
        return measured(self.rate, self.batch, self.took, self.failed, self.tables.units, self.pages)

    @property
    def pages(self) -> int:
        return len(self.tables.log.pages.get(LEDGER.name, {}))

    def events(self) -> list[str]:
        pages = self.tables.log.pages.get(LEDGER.name, {})
        return [record.id for first in sorted(pages) for record in pages[first].records]


def measured(
    rate: float, batch: int, took: Sequence[tuple[float, float]], failed: int, units: Units, pages: int
) -> dict[str, Any]:
    warm = sorted(ms for began, ms in took if began >= WARM_MS) or [0.0]
    events = max(1, len(took) * batch)
    return {
        "events/s": int(rate),
        "batch": batch,
        "committed": len(took) * batch,
        "failed": failed,
        "p50 ms": round(warm[len(warm) // 2]),
        "p99 ms": round(warm[int(len(warm) * 0.99)]),
        "max ms": round(warm[-1]),
        "write units": round(units.write / events, 2),
        "read units": round(units.read / events, 2),
        "lost puts": round(units.lost / events, 3),
        "events a page": round(events / max(1, pages), 1),
    }


@cache
def samples() -> list[Draft]:
    return drafts("realistic", 500, 1)


def request(number: int, batch: int) -> list[Draft]:
    """Realistic events of half a kilobyte, each under an id of its own."""
    kept = samples()
    return [
        replace(kept[(number * batch + index) % len(kept)], id=f"{number:012}-{index:012}-{index:010}")
        for index in range(batch)
    ]


@dataclass(slots=True)
class Transaction:
    """Counter, event and dedupe row in one `TransactWriteItems`: two units each, all of them again after a clash."""

    rate: float
    tries: int = 4
    time: VirtualTime = field(init=False)
    units: Units = field(default_factory=Units)
    took: list[tuple[float, float]] = field(default_factory=list)
    failed: int = 0
    open: int = 0

    def __post_init__(self) -> None:
        self.time = VirtualTime(seed=int(self.rate))

    def run(self) -> Transaction:
        at = 0.0
        while at < SECONDS.get(int(self.rate), 10.0) * 1000:
            at += self.time.rng.expovariate(self.rate) * 1000
            self.time.spawn(at, self._request)
        self.time.run(at + 60_000)
        return self

    def _request(self) -> None:
        began = self.time.now_ms
        for attempt in range(self.tries):
            self.units.write += 6
            self.units.puts += 1
            if self._commits():
                self.took.append((began, self.time.now_ms - began))
                return
            self.units.lost += 1
            self.time.wait(self.time.rng.uniform(0, min(20_000, 50 * 2**attempt)))
        self.failed += 1

    def _commits(self) -> bool:
        """Of transactions that are open on one counter at the same time, the later ones are cancelled."""
        clash = self.open > 0
        self.open += not clash
        self.time.call(2 * WRITE_MS, lambda: None)
        self.open -= not clash
        return not clash

    def row(self) -> dict[str, Any]:
        return measured(self.rate, 1, self.took, self.failed, self.units, len(self.took))


def run(rates: Sequence[int] = RATES) -> Section:
    hub = [Experiment(rate, batch).run() for batch in BATCHES for rate in rates if rate >= batch]
    optimistic: list[Callable[[], Any]] = [Experiment(rate, 1, in_line=False).run for rate in rates if rate <= 500]
    transactions = [Transaction(rate).run() for rate in rates if rate <= 500]
    return Section(
        [
            Table(
                "busy", "one ledger, requests at random; storage answers in 3.5 to 4.5 ms", [one.row() for one in hub]
            ),
            Table("optimistic", "the same without a waiting room", [one().row() for one in optimistic]),
            Table("transaction", "the usual transaction: counter, event, dedupe row", [t.row() for t in transactions]),
        ],
        [*lone_figures(Experiment(1, 1, evenly=True).run()), *(figure for one in hub for figure in figures(one))],
    )


def lone_figures(alone: Experiment) -> list[Figure]:
    """Of a writer that nobody disturbs; registering the ledger is one write of all these."""
    row, registered = alone.row(), 1 / len(alone.took)
    return [
        at_most("a lone writer: write units an event", round(2 + registered, 2), row["write units"]),
        exactly("a lone writer: puts lost", "0", f"{row['lost puts']:g}"),
    ]


def figures(one: Experiment) -> list[Figure]:
    row, name = one.row(), f"{one.rate:g}/s in batches of {one.batch}"
    ids = one.events()
    held = [
        exactly(f"{name}: failed", "0", str(one.failed)),
        exactly(f"{name}: committed once each", str(len(ids)), str(len(set(ids)))),
    ]
    if one.batch == 1:
        held.append(at_most(f"{name}: write units an event", LIMITS[int(one.rate)], row["write units"]))
    held.append(
        at_most(f"{name}: p99 after the first second", 200 if one.rate <= 1_000 else 1_000, row["p99 ms"], " ms")
    )
    return held
