"""What the actors of announced changes share: durable tables, containers with stale heads, processes that soon die."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.access import Identity
from millrace.streams.adapters.memory import MemoryRuntimes
from millrace.streams.application.announce import Announce
from millrace.streams.domain.privacy import Policy, hasher
from tests.simulation.announced import TENANT
from tests.simulation.rows import FaultyRows, FaultyRuntimes, Mortal, RecordedTables
from tests.simulation.scheduler import Scheduler
from tests.simulation.tables import FaultyClaims, FaultyLog, FaultyState

ME = Identity.of({"client_id": "c", "tenant": TENANT, "partitions": ["*"], "roles": ["producer", "consumer"]})
POLICY = Policy.of({})


@dataclass(slots=True)
class Stage:
    rng: random.Random
    scheduler: Scheduler
    tables: RecordedTables
    negotiated: MemoryRuntimes
    containers: list[Heads]
    trouble: float
    lifetime_ms: int

    def process(self) -> Mortal:
        return Mortal(self.scheduler, self.rng, self.trouble, self.scheduler.clock_ms + self.lifetime_ms)

    def rows(self, process: Mortal) -> FaultyRows:
        return FaultyRows(process, self.tables.rows)

    def runtimes(self, process: Mortal) -> Any:
        return cast("Any", FaultyRuntimes(process, self.negotiated))

    def announce(self, process: Mortal, *undo: Callable[[Any], Any]) -> Announce:
        commit = Commit(
            FaultyClaims(process, self.tables.claims),
            FaultyLog(process, self.tables.log),
            FaultyState(process, self.tables.state),
            self.rng.choice([*self.containers, Heads(self.scheduler.now)]),
            process.together,
            self.scheduler.now,
            lambda: self.rng.randbytes(8),
            self._wait,
        )
        return Announce(self.rows(process), commit, self.new_id, self._wait, *undo)

    def new_id(self) -> str:
        return self.rng.randbytes(8).hex()

    def hasher(self, tenant: str) -> Callable[[str], str]:
        return hasher(tenant.encode())

    def _wait(self, _attempt: int) -> None:
        self.scheduler.pause()
