"""Rows and intents for the simulator: what was ever stored, and faulty views of it for processes that soon die."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from millrace.ledger.adapters.memory import MemoryLog
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Page
from millrace.streams.adapters.memory import MemoryRows, MemoryRuntimes
from millrace.streams.domain.negotiate import Negotiated
from millrace.streams.ports import Intent, RuntimeState, VersionedRow
from tests.simulation.scheduler import Killed
from tests.simulation.tables import Process, Tables

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Version:
    """A row as it was put, and the step at which that was."""

    step: int
    row: VersionedRow


@dataclass
class RecordedRows(MemoryRows):
    steps: Callable[[], int] = field(kw_only=True)
    versions: dict[tuple[str, str], list[Version]] = field(default_factory=dict)

    def put(self, group: str, key: str, row: VersionedRow) -> VersionedRow | None:
        winner = super().put(group, key, row)
        if winner is None:
            self.versions.setdefault((group, key), []).append(Version(self.steps(), row))
        return winner


@dataclass
class RecordedLog(MemoryLog):
    """Remembers in which order pages were put, over all ledgers."""

    steps: Callable[[], int] = field(kw_only=True)
    order: list[tuple[int, str, int]] = field(default_factory=list)
    """Step, ledger, first position."""

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        winner = super().append(ledger, page)
        if winner is None:
            self.order.append((self.steps(), ledger.name, page.first))
        return winner


@dataclass(slots=True)
class RecordedTables(Tables):
    log: RecordedLog = field(kw_only=True)
    rows: RecordedRows = field(kw_only=True)


@dataclass(slots=True)
class Mortal(Process):
    """A process that is ended when its time is up: what it has not done by then it never does."""

    ends_ms: int

    def call(self, effect: Callable[[], T]) -> T:
        return Process.call(self, lambda: self._while_alive(effect))

    def _while_alive(self, effect: Callable[[], T]) -> T:
        if self.scheduler.clock_ms >= self.ends_ms:
            raise Killed
        return effect()


@dataclass(slots=True)
class FaultyRows:
    process: Process
    inner: RecordedRows

    def get(self, group: str, key: str) -> VersionedRow | None:
        return self.process.call(lambda: self.inner.get(group, key))

    def put(self, group: str, key: str, row: VersionedRow) -> VersionedRow | None:
        """The SDK's own retry of a lost answer may come when much has happened."""
        winner = self.process.call(lambda: self.inner.put(group, key, row))
        if self.process.rng.random() < self.process.trouble:
            for _ in range(self.process.rng.randint(1, 60)):
                self.process.scheduler.pause()
            winner = self.process.call(lambda: self.inner.put(group, key, row))
        return winner

    def settle(self, group: str, key: str, version: int) -> None:
        self.process.call(lambda: self.inner.settle(group, key, version))

    def page(self, group: str, after: str, limit: int) -> Sequence[tuple[str, VersionedRow]]:
        return self.process.call(lambda: self.inner.page(group, after, limit))

    def leave(self, intent: Intent, now_ms: int) -> None:
        self.process.call(lambda: self.inner.leave(intent, now_ms))

    def clear(self, intent: Intent) -> None:
        self.process.call(lambda: self.inner.clear(intent))

    def left_before(self, ms: int) -> Iterable[Intent]:
        return self.process.call(lambda: self.inner.left_before(ms))


@dataclass(slots=True)
class FaultyRuntimes:
    process: Process
    inner: MemoryRuntimes

    def load(self, tenant: str, runtime_id: str, client_id: str) -> RuntimeState:
        return self.process.call(lambda: self.inner.load(tenant, runtime_id, client_id))

    def session(self, tenant: str, runtime_id: str, client_id: str) -> Negotiated | None:
        return self.process.call(lambda: self.inner.session(tenant, runtime_id, client_id))
