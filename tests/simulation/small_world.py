"""What the simulations of one capability share: faulty tables, writers that may die anywhere, and a run over seeds."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from tests.simulation.scheduler import Scheduler
from tests.simulation.tables import FaultyClaims, FaultyLog, FaultyState, Process, Tables


@dataclass(slots=True)
class SmallWorld:
    """The same seed gives the same history."""

    seed: int
    rng: random.Random = field(init=False)
    scheduler: Scheduler = field(init=False)
    tables: Tables = field(default_factory=Tables)
    trouble: float = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.scheduler = Scheduler(self.rng, stickiness=self.rng.choice((0.0, 0.5, 0.8, 0.95)))
        self.trouble = self.rng.choice((0.0, 0.02, 0.08, 0.2))

    def process(self) -> Process:
        return Process(self.scheduler, self.rng, self.trouble)

    def commit(self, process: Process) -> Commit:
        return Commit(
            FaultyClaims(process, self.tables.claims),
            FaultyLog(process, self.tables.log),
            FaultyState(process, self.tables.state),
            Heads(self.scheduler.now),
            process.together,
            self.scheduler.now,
            lambda: self.rng.randbytes(8),
            lambda _: self.scheduler.pause(),
        )


def run_seeds(run: Callable[[int], None], report: Callable[[], str]) -> int:
    """A seed that breaks a promise is named, and ends the run. What to run, the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=1)
    asked = parser.parse_args()
    for seed in range(asked.first, asked.first + asked.seeds):
        try:
            run(seed)
        except Exception as error:  # noqa: BLE001 - whatever broke, the seed is what helps
            print(f"A promise is broken: seed {seed}: {error!r}", file=sys.stderr)
            return 1
    print(f"{asked.seeds} seeds held{report()}")
    return 0
