"""In-memory counters, checkpoints and sessions of the realtime contract, and projections of any ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from millrace.ledger.adapters.memory import MemoryState
from millrace.ledger.domain.names import Ledger, join_key
from millrace.realtime.ports import Watermark


@dataclass(slots=True)
class MemoryRealtime:
    state: MemoryState
    counters: dict[str, Counter[str]] = field(default_factory=dict)
    checkpoints: dict[tuple[str, str], Watermark] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def add(self, tenant: str, counts: Mapping[str, int]) -> None:
        with self.lock:
            self.counters.setdefault(tenant, Counter()).update({k: v for k, v in counts.items() if v})

    def read(self, tenant: str) -> Mapping[str, int]:
        with self.lock:
            return dict(self.counters.get(tenant, {}))

    def move(self, session: Ledger, consumer: str, to: Watermark) -> bool:
        with self.lock:
            known = self.checkpoints.get((session.name, consumer))
            if known is not None and _goes_back(known, to):
                return False
            kept = known.sequence if known is not None and to.sequence is None else to.sequence
            self.checkpoints[session.name, consumer] = replace(to, sequence=kept)
            return True

    def get(self, session: Ledger, consumer: str) -> Watermark | None:
        with self.lock:
            return self.checkpoints.get((session.name, consumer))

    def of_tenant(self, tenant: str) -> Iterable[Ledger]:
        prefix = join_key("realtime", tenant) + "#"
        return [ledger for ledger in self.state.ledgers() if ledger.name.startswith(prefix)]


def _goes_back(known: Watermark, to: Watermark) -> bool:
    if known.sequence is not None and to.sequence is not None:
        return to.sequence < known.sequence
    return (to.instant, to.event_id) < (known.instant, known.event_id)
