"""Sync: calls, read units and round trips per page, for the whole project and for one partition of ten."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft
from millrace.sync.application.sync import Sync
from millrace.sync.domain.read import HTTP_PAGE_BYTES
from tests.bench.events import drafts
from tests.bench.report import Figure, Section, Table, at_most
from tests.bench.rig import ORIGIN, Clock, Rig, own_rig
from tests.bench.tally import Tally

TABLES = ("log", "state", "index")
PAGE = 1_000
ROUND_TRIPS = 2
ONE_OF_TEN = ("team-3",)


@dataclass(slots=True)
class WatchedHeads(Heads):
    """Notes at how many round trips the head was known: when it was recalled, or else when it was found."""

    tally: Tally | None = None
    known_at: int = 0

    def recall(self, ledger: Ledger) -> tuple[int, int] | None:
        self._note()
        return Heads.recall(self, ledger)

    def remember(self, ledger: Ledger, end: int) -> None:
        self._note()
        Heads.remember(self, ledger, end)

    def _note(self) -> None:
        assert self.tally is not None
        self.known_at = self.tally.rounds.spent


@dataclass(frozen=True, slots=True)
class Read:
    """A whole sync cycle."""

    events: int
    pages: int
    calls: int
    read_units: int
    rounds: int
    rounds_after_head: int
    """Of the worst page."""
    seconds: float

    def row(self, stored: str, asked: str) -> dict[str, Any]:
        return {
            "stored": stored,
            "asked": asked,
            "events": self.events,
            "pages": self.pages,
            "calls per page": round(self.calls / self.pages, 2),
            "read units per event": round(self.read_units / max(1, self.events), 3),
            "round trips per page": round(self.rounds / self.pages, 2),
            "after the head, worst page": self.rounds_after_head,
            "ms per page": round(self.seconds / self.pages * 1000, 1),
        }


def cycle(rig: Rig, ledger: Ledger, partitions: Sequence[str] | None) -> Read:
    """From 0 to the head in pages of a thousand, by a process that knows nothing at first."""
    heads = WatchedHeads(Clock(), tally=rig.tally)
    sync = Sync(rig.log, rig.state, rig.index, heads, rig.together)
    since, sync_to, pages, events, worst = 0, None, 0, 0, 0
    started = time.perf_counter()
    with rig.tally.measured() as counts:
        more = True
        while more:
            page = sync(ledger, partitions, since, PAGE, HTTP_PAGE_BYTES, sync_to)
            worst = max(worst, rig.tally.rounds.spent - heads.known_at)
            since, sync_to, more = page.next_since, page.sync_to, page.has_more
            pages += 1
            events += len(page.events)
    seconds = time.perf_counter() - started
    return Read(events, pages, counts.calls_to(*TABLES), counts.read_units(*TABLES), counts.rounds, worst, seconds)


@dataclass(frozen=True, slots=True)
class Stored:
    name: str
    batch: Sequence[Draft]
    per_page: int


def stored() -> list[Stored]:
    return [
        Stored("10,000 events, 100 a page", drafts("realistic", 10_000, 1), 100),
        Stored("2,000 events, one a page", drafts("realistic", 2_000, 2), 1),
        Stored("2,000 events of 3 KB, 25 a page", drafts("random", 2_000, 3, size=3_000), 25),
    ]


def run() -> Section:
    rows: list[dict[str, Any]] = []
    figures: list[Figure] = []
    with own_rig() as rig:
        for one in stored():
            for asked, read in cycles(rig, one).items():
                rows.append(read.row(one.name, asked))
                name = f"sync of {asked}, {one.name}: round trips of a page after the head"
                figures.append(at_most(name, ROUND_TRIPS, read.rounds_after_head))
    return Section([Table("cycles", "Sync cycles in pages of 1,000 events", rows)], figures)


def cycles(rig: Rig, of: Stored) -> dict[str, Read]:
    """The whole project, one partition through an index that lags by half the ledger, and through one that does not."""
    ledger, half = rig.ledger(), len(of.batch) // 2
    committing = rig.writer().commit
    for start in range(0, half, of.per_page):
        committing(ledger, of.batch[start : start + of.per_page], ORIGIN)
    assert rig.index_partitions(ledger)
    for start in range(half, len(of.batch), of.per_page):
        committing(ledger, of.batch[start : start + of.per_page], ORIGIN)
    behind = cycle(rig, ledger, ONE_OF_TEN)
    assert rig.index_partitions(ledger)
    return {
        "the whole project": cycle(rig, ledger, None),
        "one partition of ten, indexed": cycle(rig, ledger, ONE_OF_TEN),
        "one partition of ten, half indexed": behind,
    }
