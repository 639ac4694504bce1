"""Table models with DynamoDB's semantics and its bad days: one faulty view per process on shared in-memory tables."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState
from millrace.ledger.domain.errors import Throttled, Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Page
from millrace.ledger.ports import Claim, Claimed, Marks, Run
from millrace.sync.adapters.memory import MemoryIndex
from millrace.sync.ports import IndexRow, IndexRows
from tests.simulation.scheduler import Killed, Scheduler

T = TypeVar("T")


@dataclass(slots=True)
class Tables:
    """What is durable: it outlives every process."""

    claims: MemoryClaims = field(default_factory=MemoryClaims)
    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)
    index: MemoryIndex = field(default_factory=MemoryIndex)


@dataclass(slots=True)
class Process:
    """One process's luck. A call may fail before or after its effect, repeat, or be the last thing it does."""

    scheduler: Scheduler
    rng: random.Random
    trouble: float
    """How likely each call is to go wrong; 0 for the quiet end of a run."""

    def call(self, effect: Callable[[], T]) -> T:
        self.scheduler.pause()
        fate = self.rng.random()
        if fate < self.trouble * 0.2:
            raise Killed
        if fate < self.trouble * 0.3:
            raise Throttled("slow down")
        if fate < self.trouble * 0.4:
            raise Unavailable("error before effect")
        result = effect()
        if fate < self.trouble * 0.6:
            raise Unavailable("error after effect")
        if fate < self.trouble * 0.8:
            self.scheduler.pause()
            result = effect()  # the SDK's own retry of a lost answer
        elif fate < self.trouble:
            self.scheduler.pause()
            raise Killed
        return result

    def together(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """In any order; the scheduler puts other processes in between."""
        order = list(range(len(calls)))
        self.rng.shuffle(order)
        results: dict[int, Any] = {}
        for number in order:
            results[number] = calls[number]()
        return [results[number] for number in range(len(calls))]


@dataclass(slots=True)
class FaultyClaims:
    process: Process
    inner: MemoryClaims

    def create(self, ledger: Ledger, ids: Sequence[str], seen: int) -> Claimed:
        """Statements of one batch succeed, fail, or fail after their effect, one by one and not at one instant."""
        created, existed, failed = set[str](), set[str](), set[str]()
        self.process.scheduler.pause()
        for id_ in ids:
            fate = self.process.rng.random()
            if fate < self.process.trouble:
                failed.add(id_)
                if fate < self.process.trouble / 2:
                    self.inner.create(ledger, [id_], seen)
                continue
            answer = self.inner.create(ledger, [id_], seen)
            (created if answer.created else existed).add(id_)
            if self.process.rng.random() < 0.3:
                self.process.scheduler.pause()
        return self.process.call(lambda: Claimed(frozenset(created), frozenset(existed), frozenset(failed)))

    def get(self, ledger: Ledger, ids: Sequence[str]) -> Mapping[str, Claim]:
        return self.process.call(lambda: self.inner.get(ledger, ids))

    def advance(self, ledger: Ledger, ids: Sequence[str], seen: int) -> None:
        self.process.call(lambda: self.inner.advance(ledger, ids, seen))


@dataclass(slots=True)
class FaultyLog:
    process: Process
    inner: MemoryLog

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        return self.process.call(lambda: self.inner.append(ledger, page))

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        """A query is no snapshot: its upper part may be younger than its lower part, and it may stop early."""
        lower = self.process.call(lambda: self.inner.read(ledger, after, through=through))
        split = after + self.process.rng.randint(0, 6)
        pages = [page for page in lower.pages if page.first <= split]
        self.process.scheduler.pause()
        pages += [page for page in self.inner.read(ledger, after, through=through).pages if page.first > split]
        cut = self.process.rng.choice((limit, limit, 1, 3)) if limit is None else limit
        return Run(pages, more=lower.more) if cut is None else Run(pages[:cut], more=len(pages) > cut)

    def holding(self, ledger: Ledger, position: int) -> Page | None:
        return self.process.call(lambda: self.inner.holding(ledger, position))

    def get(self, ledger: Ledger, firsts: Sequence[int]) -> Mapping[int, Page]:
        """May leave pages out, as a batch does with its unprocessed keys."""
        pages = dict(self.process.call(lambda: self.inner.get(ledger, firsts)))
        if len(pages) > 1 and self.process.rng.random() < self.process.trouble:
            del pages[self.process.rng.choice(sorted(pages))]
        return pages

    def replace(self, ledger: Ledger, page: Page) -> bool:
        return self.process.call(lambda: self.inner.replace(ledger, page))


@dataclass(slots=True)
class FaultyState:
    process: Process
    inner: MemoryState

    def register(self, ledger: Ledger) -> None:
        self.process.call(lambda: self.inner.register(ledger))

    def ledgers(self) -> Iterable[Ledger]:
        return self.process.call(self.inner.ledgers)

    def marks(self, ledger: Ledger) -> Marks:
        return self.process.call(lambda: self.inner.marks(ledger))

    def move_cursor(self, ledger: Ledger, consumer: str, expected: int, to: int, noted: int = 0) -> bool:
        return self.process.call(lambda: self.inner.move_cursor(ledger, consumer, expected, to, noted))

    def raise_floor(self, ledger: Ledger, to: int) -> None:
        self.process.call(lambda: self.inner.raise_floor(ledger, to))


@dataclass(slots=True)
class FaultyIndex:
    process: Process
    inner: MemoryIndex

    def write(self, ledger: Ledger, rows: Sequence[IndexRow]) -> None:
        """Rows become durable one by one; a crash may leave some of them."""
        for row in rows:
            self.process.call(lambda row=row: self.inner.write(ledger, [row]))  # type: ignore[misc]

    def read(self, ledger: Ledger, partition: str, after: int, limit: int) -> IndexRows:
        limit = self.process.rng.choice((1, 2, limit))
        return self.process.call(lambda: self.inner.read(ledger, partition, after, limit))

    def before(self, ledger: Ledger, partition: str, position: int) -> IndexRow | None:
        return self.process.call(lambda: self.inner.before(ledger, partition, position))


Unlucky = (Unavailable, Throttled)
