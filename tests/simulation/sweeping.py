"""A month of sweeps over very many ledgers, in virtual time: which of them are looked at, when, and for how many reads.

`python -m tests.simulation.sweeping --ledgers N --seed N`. Most ledgers sleep. Some grow, and doorbells are lost: of
the fan-out, of the archive, or of both. The last of the registry are the few sync ledgers, after very many sessions.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from millrace.ledger.adapters.memory import MemoryLog, MemoryState, in_turn
from millrace.ledger.adapters.memory_rounds import MemoryRounds
from millrace.ledger.application.failures import Failures
from millrace.ledger.application.note_growth import NotingState
from millrace.ledger.application.sweep import ASLEEP_A_SWEEP, Sweep, Watch
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Origin, Page, Record
from millrace.ledger.ports import Marks, Run

MINUTE_MS = 60_000
SWEEP_MS = 5 * MINUTE_MS
CONSUMERS = ("fan_out", "archive")
LATE_MS = {"fan_out": 30_000, "archive": 300_000}
FOUND_WITHIN = 2
"""Sweeps, after the page is late, for a ledger that the other consumer has noted."""
VISITS_A_NOTE = 6
"""At most, of a ledger because it was noted in a window."""
READS_A_VISIT = 2
"""Of a ledger at rest: its cursors, and the log after them."""


@dataclass(slots=True)
class CountedLog(MemoryLog):
    reads: int = 0

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        self.reads += 1
        return MemoryLog.read(self, ledger, after, limit, through)


@dataclass(slots=True)
class CountedState(MemoryState):
    reads: int = 0

    def marks(self, ledger: Ledger) -> Marks:
        self.reads += 1
        return MemoryState.marks(self, ledger)


@dataclass(slots=True)
class CountedRounds(MemoryRounds):
    written: int = 0

    def note(self, ledger: Ledger, window: int) -> None:
        self.written += 1
        MemoryRounds.note(self, ledger, window)


@dataclass(slots=True)
class Consumer:
    """Reads a ledger to its end when it is told of it, as the fan-out and the archive do."""

    name: str
    month: Month

    def ring(self, ledgers: Iterable[Ledger]) -> None:
        if self.month.deaf:
            return
        for ledger in ledgers:
            self.month.found(self.name, ledger)
            self.read(ledger)

    def read(self, ledger: Ledger) -> None:
        cursor = self.month.noting.marks(ledger).cursors.get(self.name, 0)
        head = self.month.heads.get(ledger.name, 0)
        if head > cursor:
            self.month.noting.move_cursor(ledger, self.name, cursor, head)


@dataclass(slots=True)
class Month:
    ledgers: int
    seed: int
    visits_a_sweep: int
    """There is time for so many ledgers that have grown."""
    now_ms: int = 1_800_000_000_000
    log: CountedLog = field(default_factory=CountedLog)
    state: MemoryState = field(default_factory=MemoryState)
    heads: dict[str, int] = field(default_factory=dict)
    lost: dict[tuple[str, str], tuple[int, bool]] = field(default_factory=dict)
    """By consumer and ledger: the sweep before which its doorbell was lost, and whether the other one was rung."""
    waits: list[int] = field(default_factory=list)
    """Sweeps until a lost doorbell was made good, if the other consumer was rung."""
    seen: dict[str, int] = field(default_factory=dict)
    sweeps: int = 0
    visits: int = 0
    deaf: bool = False
    """No consumer hears what sweeps ring."""
    rng: random.Random = field(init=False)
    rounds: CountedRounds = field(init=False)
    watched: CountedState = field(init=False)
    noting: NotingState = field(init=False)
    names: list[Ledger] = field(init=False)
    consumers: dict[str, Consumer] = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.rounds = CountedRounds(self.state)
        self.watched = CountedState(self.state.registry, self.state.cursors, self.state.floors, self.state.windows)
        self.noting = NotingState(self.state, self.rounds, self.clock)
        sync = max(1, self.ledgers // 50_000)
        names = [f"realtime#t#session-{number:07}" for number in range(self.ledgers - sync)]
        self.names = [Ledger(name, name) for name in (*names, *(f"sync#t#project-{number}" for number in range(sync)))]
        for ledger in self.names:
            self.state.register(ledger)
        self.consumers = {name: Consumer(name, self) for name in CONSUMERS}

    def clock(self) -> int:
        return self.now_ms

    @property
    def lap(self) -> int:
        """So many sweeps look at every ledger."""
        return -(-self.ledgers // ASLEEP_A_SWEEP) + 1

    @property
    def reads(self) -> int:
        return self.log.reads + self.watched.reads

    def run(self, sweeps: int, grow: int = 0, losses: float = 0.0) -> None:
        """Between two sweeps so many ledgers grow, and of their doorbells such a share is lost."""
        for _ in range(sweeps):
            for ledger in self.rng.sample(self.names, grow):
                self._grow(ledger, losses)
            self.now_ms += SWEEP_MS
            self._sweep()

    def _grow(self, ledger: Ledger, losses: float) -> None:
        first = self.heads.get(ledger.name, 0) + 1
        at_ms = self.now_ms + self.rng.randrange(SWEEP_MS)
        self.log.append(ledger, Page(first, (Record("e", b"", b"{}"),), at_ms, Origin("C"), b""))
        self.heads[ledger.name] = first
        rung = [name for name in CONSUMERS if self.rng.random() >= losses]
        before, self.now_ms = self.now_ms, at_ms
        for name in rung:
            self.lost.pop((name, ledger.name), None)  # it reads to the end
            self.consumers[name].read(ledger)
        self.now_ms = before
        for name in CONSUMERS:
            if name not in rung:
                self.lost.setdefault((name, ledger.name), (self.sweeps, bool(rung)))

    def hear_again(self) -> None:
        """What was rung for in vain has to be rung for from now on."""
        self.deaf = False
        self.lost = {key: (self.sweeps, noted) for key, (_, noted) in self.lost.items()}

    def found(self, consumer: str, ledger: Ledger) -> None:
        since = self.lost.pop((consumer, ledger.name), None)
        if since is not None and since[1]:
            self.waits.append(self.sweeps - since[0])

    def _sweep(self) -> None:
        self.sweeps += 1
        watches = [Watch(name, self.consumers[name], LATE_MS[name]) for name in CONSUMERS]
        left = iter(range((ASLEEP_A_SWEEP + self.visits_a_sweep) // 64))
        time_left = lambda: next(left, None) is not None  # noqa: E731
        swept = Sweep(self.log, self.watched, self.rounds, watches, in_turn, self.clock, time_left)(Failures())
        self.seen.update(dict.fromkeys(swept.seen, self.sweeps))
        self.visits += len(swept.seen)

    def prove(self, within: int = FOUND_WITHIN) -> None:
        """Raises AssertionError if a ledger starves, or sweeps cost more than they should."""
        overdue = [key for key, (since, noted) in self.lost.items() if noted and self.sweeps - since > within]
        assert not overdue, f"a lost doorbell of a noted ledger is not made good: {overdue[0]}, of {len(overdue)}"
        assert max(self.waits, default=0) <= within, f"made good after {max(self.waits)} sweeps"
        if self.sweeps >= self.lap:
            starved = sum(self.sweeps - self.seen.get(ledger.name, -self.lap) > self.lap for ledger in self.names)
            assert not starved, f"{starved} of {self.ledgers} ledgers were not looked at in {self.lap} sweeps"
            both = [key for key, (since, _) in self.lost.items() if self.sweeps - since > self.lap]
            assert not both, f"what nobody noted was not found in {self.lap} sweeps: {both[0]}, of {len(both)}"
        most = ASLEEP_A_SWEEP * self.sweeps + VISITS_A_NOTE * self.rounds.written
        assert self.visits <= most, f"{self.visits} visits, for {self.rounds.written} notes"


def calm(month: Month, grow: int) -> None:
    """Doorbells are lost all the time; for an hour those of sweeps are lost too."""
    month.run(month.lap - 12, grow, losses=0.3)
    month.prove()
    month.deaf = True
    month.run(12)
    month.hear_again()
    month.run(FOUND_WITHIN + 1)
    month.prove()


def burst(month: Month) -> None:
    """Far more ledgers grow than a sweep has time for, in the midst of others."""
    noted = month.visits_a_sweep * 8
    month.run(1, noted, losses=0.1)
    month.waits.clear()
    month.run(20, 5, losses=0.3)
    month.prove(within=20)
    month.waits.clear()


def rest(month: Month) -> float:
    """Reads of a sweep when all are asleep and nobody is behind."""
    for consumer, name in month.lost:
        month.consumers[consumer].read(Ledger.to_read(name))
    month.lost.clear()
    month.run(6)
    before = month.reads
    month.run(20)
    reads = (month.reads - before) / 20
    assert reads <= READS_A_VISIT * ASLEEP_A_SWEEP, f"{reads} reads a sweep for sleeping ledgers"
    return reads


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ledgers", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grow", type=int, default=20)
    parser.add_argument("--visits", type=int, default=640)
    asked = parser.parse_args()
    month = Month(asked.ledgers, asked.seed, asked.visits)
    try:
        calm(month, asked.grow)
        waits = list(month.waits)
        burst(month)
        reads = rest(month)
    except AssertionError as error:
        print(f"A promise is broken: seed {asked.seed}: {error}", file=sys.stderr)
        return 1
    print(f"{month.sweeps} sweeps held; every ledger is looked at in {month.lap} sweeps")
    print(f"{len(waits)} lost doorbells were made good after {max(waits)} sweeps at most")
    print(f"{reads:g} reads a sweep when all are asleep; {month.visits} visits, {month.rounds.written} notes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
