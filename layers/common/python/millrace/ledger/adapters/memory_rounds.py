"""The lists of ledgers that sweeps go through, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from millrace.ledger.adapters.memory import MemoryState
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Leg


@dataclass(slots=True)
class MemoryRounds:
    """A place is the number of ledgers before it: none is ever taken off a list."""

    state: MemoryState
    notes: dict[int, dict[str, Ledger]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    _registry: list[Ledger] = field(default_factory=list)

    def registered(self, place: str, limit: int) -> Leg:
        with self.lock:
            if len(self._registry) != len(self.state.registry):
                self._registry = list(self.state.registry.values())
            return _stretch(self._registry, place, limit)

    def note(self, ledger: Ledger, window: int) -> None:
        with self.lock:
            self.notes.setdefault(window, {})[ledger.name] = ledger

    def noted(self, window: int, place: str, limit: int) -> Leg:
        with self.lock:
            return _stretch(list(self.notes.get(window, {}).values()), place, limit)

    def kept_place(self, lane: str) -> str:
        with self.lock:
            return self.places.get(lane, "")

    def keep_place(self, lane: str, place: str) -> None:
        with self.lock:
            self.places[lane] = place


def _stretch(ledgers: Sequence[Ledger], place: str, limit: int) -> Leg:
    start = int(place or 0)
    end = start + limit
    return Leg(ledgers[start:end], str(end) if end < len(ledgers) else "")
