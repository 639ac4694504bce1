"""Sweep: ring for every ledger whose log goes on after a consumer's cursor, whatever became of the stream's records."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from millrace.domain.ledger import Ledger
from millrace.ports import Doorbell, Log, State


@dataclass(frozen=True, slots=True)
class Sweep:
    log: Log
    state: State
    doorbell: Doorbell
    consumers: Collection[str]
    clock: Callable[[], int]
    late_ms: int = 0
    """How old the first unread page must be before its ledger counts as behind."""

    def __call__(self) -> int:
        """Returns how many ledgers were behind."""
        behind = 0
        for ledger in self.state.ledgers():
            if self._is_behind(ledger):
                self.doorbell.ring([ledger])
                behind += 1
        return behind

    def _is_behind(self, ledger: Ledger) -> bool:
        cursors = self.state.marks(ledger).cursors
        slowest = min(cursors.get(consumer, 0) for consumer in self.consumers)
        unread = self.log.read(ledger, slowest, 1).pages
        return bool(unread) and unread[0].time_ms <= self.clock() - self.late_ms
