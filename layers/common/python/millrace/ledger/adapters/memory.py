"""In-memory adapters: first-class, thread-safe, with DynamoDB's contract. The simulator is built on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from millrace.ledger.domain.names import Ledger, bucket_end, bucket_of
from millrace.ledger.domain.page import Page
from millrace.ledger.ports import Claim, Claimed, Marks, Projection, Run


@dataclass(slots=True)
class MemoryClaims:
    items: dict[tuple[str, str], Claim] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def create(self, ledger: Ledger, ids: Sequence[str], seen: int) -> Claimed:
        with self.lock:
            new = [id_ for id_ in ids if (ledger.dedupe_scope, id_) not in self.items]
            for id_ in new:
                self.items[ledger.dedupe_scope, id_] = Claim(ledger.name, seen)
        return Claimed(frozenset(new), frozenset(ids) - frozenset(new), frozenset())

    def get(self, ledger: Ledger, ids: Sequence[str]) -> Mapping[str, Claim]:
        with self.lock:
            return {id_: self.items[ledger.dedupe_scope, id_] for id_ in ids}

    def find(self, ledger: Ledger, id_: str) -> Claim | None:
        with self.lock:
            return self.items.get((ledger.dedupe_scope, id_))

    def advance(self, ledger: Ledger, ids: Sequence[str], seen: int) -> None:
        with self.lock:
            for id_ in ids:
                claim = self.items[ledger.dedupe_scope, id_]
                if claim.ledger == ledger.name and claim.seen < seen:
                    self.items[ledger.dedupe_scope, id_] = Claim(claim.ledger, seen)


@dataclass(slots=True)
class MemoryLog:
    pages: dict[str, dict[int, Page]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        with self.lock:
            return self._put_if_absent(ledger, page)

    def _put_if_absent(self, ledger: Ledger, page: Page) -> Page | None:
        pages = self.pages.setdefault(ledger.name, {})
        winner = pages.get(page.first)
        if winner is None:
            pages[page.first] = page
        return winner

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        last = bucket_end(after + 1) if through is None else min(through, bucket_end(after + 1))
        with self.lock:
            pages = self.pages.get(ledger.name, {})
            found = [pages[first] for first in sorted(first for first in pages if after < first <= last)]
        taken = found if limit is None else found[:limit]
        return Run(taken, more=len(taken) < len(found))

    def holding(self, ledger: Ledger, position: int) -> Page | None:
        with self.lock:
            pages = self.pages.get(ledger.name, {})
            bucket = bucket_of(position)
            firsts = [first for first in pages if first <= position and bucket_of(first) == bucket]
            return pages[max(firsts)] if firsts else None

    def get(self, ledger: Ledger, firsts: Sequence[int]) -> Mapping[int, Page]:
        with self.lock:
            pages = self.pages.get(ledger.name, {})
            return {first: pages[first] for first in firsts if first in pages}

    def replace(self, ledger: Ledger, page: Page) -> bool:
        with self.lock:
            pages = self.pages.get(ledger.name, {})
            stored = pages.get(page.first)
            if stored is None or stored.revision != page.revision - 1:
                return False
            pages[page.first] = page
            return True


@dataclass(slots=True)
class MemoryState:
    registry: dict[str, Ledger] = field(default_factory=dict)
    cursors: dict[str, dict[str, int]] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)
    windows: dict[str, int] = field(default_factory=dict)
    shards: dict[str, int] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def register(self, ledger: Ledger) -> None:
        with self.lock:
            self.registry[ledger.name] = ledger

    def ledgers(self) -> Iterable[Ledger]:
        with self.lock:
            return list(self.registry.values())

    def marks(self, ledger: Ledger) -> Marks:
        with self.lock:
            cursors, floor = dict(self.cursors.get(ledger.name, {})), self.floors.get(ledger.name, 1)
            windows, shards = self.windows.get(ledger.name, 0), self.shards.get(ledger.name, 1)
            return Marks(cursors, floor, windows, shards=shards)

    def move_cursor(self, ledger: Ledger, consumer: str, expected: int, to: int, noted: int = 0) -> bool:
        with self.lock:
            cursors = self.cursors.setdefault(ledger.name, {})
            if cursors.get(consumer, 0) != expected:
                return False
            cursors[consumer] = to
            if noted:
                self.windows[ledger.name] = max(noted, self.windows.get(ledger.name, 0))
            return True

    def raise_floor(self, ledger: Ledger, to: int) -> None:
        with self.lock:
            self.floors[ledger.name] = max(to, self.floors.get(ledger.name, 1))


@dataclass(slots=True)
class MemoryMeter:
    moments: dict[str, int] = field(default_factory=dict)
    writes: int = 0

    def add(self, tenant: str, used_us: int, since_us: int, latest_us: int) -> int:
        self.writes += 1
        self.moments[tenant] = min(latest_us, max(since_us, self.moments.get(tenant, 0)) + used_us)
        return self.moments[tenant]


@dataclass(slots=True)
class MemoryDoorbell:
    rung: list[Ledger] = field(default_factory=list)

    def ring(self, ledgers: Iterable[Ledger]) -> None:
        self.rung.extend(ledgers)


def in_turn(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """`Together` for one thread: one after the other."""
    return [call() for call in calls]


@dataclass(slots=True)
class MemoryProjections:
    projections: dict[str, Projection] = field(default_factory=dict)
    editions: int = 0
    lock: Lock = field(default_factory=Lock)

    def load(self, ledger: Ledger) -> Projection:
        with self.lock:
            return self.projections.get(ledger.name, Projection(0, {}))

    def store(self, ledger: Ledger, projection: Projection, over: Projection) -> bool:
        with self.lock:
            stored = self.projections.get(ledger.name, Projection(0, {}))
            if stored.edition != over.edition:
                return False
            self.editions += 1
            self.projections[ledger.name] = replace(projection, edition=str(self.editions))
            return True
