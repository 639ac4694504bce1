"""Seeded runs of the archive: writers, several archivers and retention at once, each of which may fail or die anywhere.

`python -m tests.simulation.archiving --seeds N --first N`. A seed that breaks the promise is named; the same seed
gives the same history.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from millrace.lake.adapters.memory.lanes import MemoryLanes
from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.application import archive_events as archive_module
from millrace.lake.application.archive_events import ArchiveEvents
from millrace.lake.application.gather_archive import ObjectLimits
from millrace.lake.domain.archive import read_lines
from millrace.lake.ports.lanes import Lane
from millrace.ledger.application.prune import Prune
from millrace.ledger.domain import names as ledger_module
from millrace.ledger.domain.canonical import digest
from millrace.ledger.domain.consumers import ARCHIVE_CONSUMER
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin
from tests.simulation.scheduler import Killed
from tests.simulation.small_world import SmallWorld, run_seeds
from tests.simulation.tables import FaultyLog, FaultyState, Process, Unlucky


def shrink() -> None:
    ledger_module.BUCKET = 5
    archive_module.LANES = 2
    archive_module.SIDE_BY_SIDE = 2


@dataclass(slots=True)
class FaultyLanes:
    process: Process
    inner: MemoryLanes

    def load(self, number: int) -> Lane:
        return self.process.call(lambda: self.inner.load(number))

    def store(self, number: int, lane: Lane) -> bool:
        return self.process.call(lambda: self.inner.store(number, lane))


@dataclass(slots=True)
class FaultyObjects(MemoryObjects):
    process: Any = None
    inner: Any = None

    def put(self, name: str, data: bytes) -> bool:
        taken: bool = self.process.call(lambda: self.inner.put(name, data))
        return taken


@dataclass(slots=True)
class ArchiveWorld(SmallWorld):
    lanes: MemoryLanes = field(default_factory=MemoryLanes)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
    ledgers: list[Ledger] = field(init=False)
    limits: ObjectLimits = field(init=False)

    def __post_init__(self) -> None:
        SmallWorld.__post_init__(self)
        self.ledgers = [Ledger.of("sync", "t", f"p{number}") for number in range(self.rng.randint(1, 5))]
        self.limits = ObjectLimits(self.rng.choice((2, 5, 100)), 10_000, self.rng.choice((1, 2, 100)))

    def run(self) -> int:
        for number in range(self.rng.randint(1, 4)):
            self.scheduler.spawn(lambda number=number: self._writer(number), delay=self.rng.choice((0, 5, 40)))  # type: ignore[misc]
        for _ in range(self.rng.randint(1, 4)):
            self.scheduler.spawn(self._archiver, delay=self.rng.choice((0, 3, 20, 60)))
        for _ in range(self.rng.randint(0, 2)):
            self.scheduler.spawn(self._pruner, delay=self.rng.choice((20, 60, 120)))
        self.scheduler.run()
        self.trouble = 0.0
        self.scheduler.spawn(self._archiver)
        self.scheduler.run()
        return self._prove()

    def _writer(self, number: int) -> None:
        for turn in range(self.rng.randint(1, 5)):
            process, ledger = self.process(), self.rng.choice(self.ledgers)
            ids = [f"e{number}-{turn}-{n}" for n in range(self.rng.randint(1, 4))]
            drafts = [
                Draft(id_, digest(id_.encode()), b'{"event":{"type":"t"},"id":"%b"}' % id_.encode()) for id_ in ids
            ]
            commit = self.commit(process)
            with suppress(*Unlucky, Killed):
                commit(ledger, drafts, Origin("c"))

    def _archiver(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            process = self.process()
            quiet = not self.trouble
            archive = ArchiveEvents(
                FaultyLog(process, self.tables.log),
                FaultyState(process, self.tables.state),
                FaultyLanes(process, self.lanes),
                FaultyObjects(process=process, inner=self.objects),
                process.together,
                lambda _: self.scheduler.pause(),
                lambda quiet=quiet: quiet or self.rng.random() < 0.9,  # type: ignore[misc]
                self.limits,
            )
            some = self.ledgers if quiet else self.rng.sample(self.ledgers, self.rng.randint(1, len(self.ledgers)))
            with suppress(*Unlucky, Killed):
                archive(some)

    def _pruner(self) -> None:
        """Nothing is pruned that is not in the archive."""
        for _ in range(self.rng.randint(1, 3)):
            process, ledger = self.process(), self.rng.choice(self.ledgers)
            state = FaultyState(process, self.tables.state)
            with suppress(*Unlucky, Killed):
                Prune(FaultyLog(process, self.tables.log), state, (ARCHIVE_CONSUMER,))(ledger, self.rng.randint(1, 12))
            held = set(self._archived())
            for pages in (self.tables.log.pages.get(ledger.name, {}),):
                for page in pages.values():
                    gone = {(ledger.name, e.position) for e in page.events() if e.record.body is None}
                    assert gone <= held, f"pruned but not archived: {sorted(gone - held)}"

    def _archived(self) -> list[tuple[str, int]]:
        return [
            (line["ledger"], line["sequence_position"])
            for data in self.objects.stored.values()
            for line in read_lines(data)
        ]

    def _prove(self) -> int:
        committed = {
            (name, event.position): event.record.id
            for name, pages in self.tables.log.pages.items()
            for page in pages.values()
            for event in page.events()
        }
        archived = self._archived()
        assert len(set(archived)) == len(archived), "a position is archived twice"
        assert set(archived) == committed.keys(), "a position is missing from the archive, or made up"
        for data in self.objects.stored.values():
            for line in read_lines(data):
                assert line["idempotency_key"] == committed[line["ledger"], line["sequence_position"]]
        return len(archived)


def main() -> int:
    shrink()
    events: list[int] = []
    return run_seeds(lambda seed: events.append(ArchiveWorld(seed).run()), lambda: f", {sum(events)} events archived")


if __name__ == "__main__":
    sys.exit(main())
