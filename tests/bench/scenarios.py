"""The ways a commit can go, each set up and counted once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count

from millrace.ledger.application.heads import FRESH_MS
from tests.bench.events import drafts
from tests.bench.rig import ORIGIN, Rig
from tests.bench.tally import COMMIT_PATH, Counts

WRITERS = 8
ROUNDS = 5
_SEEDS = count(1_000)


@dataclass(frozen=True, slots=True)
class Measured:
    counts: Counts
    events: int
    commits: int = 1

    @property
    def units(self) -> float:
        return round(self.counts.write_units(*COMMIT_PATH) / self.events, 3)

    @property
    def calls(self) -> float:
        """Per commit, on the commit path."""
        return round(self.counts.calls_to(*COMMIT_PATH) / self.commits, 2)

    @property
    def rounds(self) -> float:
        return round(self.counts.rounds / self.commits, 2)

    def row(self) -> dict[str, float]:
        return {
            "write units per event": self.units,
            "calls per event": round(self.counts.calls_to(*COMMIT_PATH) / self.events, 3),
            "calls per commit": self.calls,
            "round trips per commit": self.rounds,
            "read units per event": round(self.counts.read_units(*COMMIT_PATH) / self.events, 3),
            "lost puts per commit": round(self.counts.lost["log"] / self.commits, 2),
            "calls to State": self.counts.calls_to("state"),
        }


def fresh(rig: Rig, kind: str, size: int) -> Measured:
    """A warm writer, alone."""
    writer, ledger = rig.writer(), rig.ledger()
    writer.commit(ledger, drafts(kind, 1, next(_SEEDS)), ORIGIN)
    batch = drafts(kind, size, next(_SEEDS))
    with rig.tally.measured() as counts:
        writer.commit(ledger, batch, ORIGIN)
    return Measured(counts, size)


def duplicate(rig: Rig, kind: str, size: int) -> Measured:
    """The same batch again."""
    writer, ledger = rig.writer(), rig.ledger()
    batch = drafts(kind, size, next(_SEEDS))
    first = writer.commit(ledger, batch, ORIGIN)
    with rig.tally.measured() as counts:
        again = writer.commit(ledger, batch, ORIGIN)
    assert [one.position for one in again] == [one.position for one in first]
    return Measured(counts, size)


def old_head(rig: Rig, kind: str, size: int) -> Measured:
    """The writer's head is older than a second, and another writer committed meanwhile."""
    writer, other, ledger = rig.writer(), rig.writer(), rig.ledger()
    writer.commit(ledger, drafts(kind, 1, next(_SEEDS)), ORIGIN)
    other.commit(ledger, drafts(kind, 1, next(_SEEDS)), ORIGIN)
    writer.clock.now += FRESH_MS + 500
    batch = drafts(kind, size, next(_SEEDS))
    with rig.tally.measured() as counts:
        writer.commit(ledger, batch, ORIGIN)
    return Measured(counts, size)


def one_loss(rig: Rig, kind: str, size: int) -> Measured:
    """The writer's head is young, yet another writer got there first."""
    writer, other, ledger = rig.writer(), rig.writer(), rig.ledger()
    writer.commit(ledger, drafts(kind, 1, next(_SEEDS)), ORIGIN)
    other.commit(ledger, drafts(kind, 1, next(_SEEDS)), ORIGIN)
    batch = drafts(kind, size, next(_SEEDS))
    with rig.tally.measured() as counts:
        writer.commit(ledger, batch, ORIGIN)
    return Measured(counts, size)


def cold(rig: Rig, kind: str, size: int) -> Measured:
    """The first commit of a process into a ledger that exists."""
    writer, ledger = rig.writer(), rig.ledger()
    rig.writer().commit(ledger, drafts(kind, 1, next(_SEEDS)), ORIGIN)
    batch = drafts(kind, size, next(_SEEDS))
    with rig.tally.measured() as counts:
        writer.commit(ledger, batch, ORIGIN)
    return Measured(counts, size)


def contention(rig: Rig, kind: str, size: int) -> Measured:
    """Eight writers at once into one ledger, several commits each."""
    ledger = rig.ledger()
    rig.writer().commit(ledger, drafts(kind, 1, next(_SEEDS)), ORIGIN)
    writers = [rig.writer() for _ in range(WRITERS)]
    batches = [[drafts(kind, size, next(_SEEDS)) for _ in range(ROUNDS)] for _ in writers]
    for writer in writers:
        writer.commit(ledger, drafts(kind, 1, next(_SEEDS)), ORIGIN)
    start = threading.Barrier(WRITERS)

    def work(number: int) -> int:
        start.wait()
        before = rig.tally.rounds.spent
        for batch in batches[number]:
            writers[number].commit(ledger, batch, ORIGIN)
        return rig.tally.rounds.spent - before

    with rig.tally.measured() as counts, ThreadPoolExecutor(WRITERS) as pool:
        spent = list(pool.map(work, range(WRITERS)))
    counts.rounds = sum(spent)
    return Measured(counts, WRITERS * ROUNDS * size, WRITERS * ROUNDS)


SCENARIOS: Mapping[str, Callable[[Rig, str, int], Measured]] = {
    "fresh, warm writer": fresh,
    "duplicate": duplicate,
    "old head": old_head,
    "fresh head, one loss": one_loss,
    "cold writer": cold,
    f"{WRITERS} writers at once": contention,
}
