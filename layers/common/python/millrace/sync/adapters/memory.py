"""The partition index in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from millrace.ledger.domain.names import Ledger
from millrace.sync.ports import IndexRow, IndexRows


@dataclass(slots=True)
class MemoryIndex:
    rows: dict[tuple[str, str], dict[tuple[int, int], IndexRow]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def write(self, ledger: Ledger, rows: Sequence[IndexRow]) -> None:
        with self.lock:
            for row in rows:
                self.rows.setdefault((ledger.name, row.partition), {})[row.end, row.start] = row

    def read(self, ledger: Ledger, partition: str, after: int, limit: int) -> IndexRows:
        with self.lock:
            rows = self.rows.get((ledger.name, partition), {})
            found = [rows[key] for key in sorted(rows) if key[0] > after]
        return IndexRows(found[:limit], truncated=len(found) > limit)

    def before(self, ledger: Ledger, partition: str, position: int) -> IndexRow | None:
        with self.lock:
            rows = self.rows.get((ledger.name, partition), {})
            return rows[max(keys)] if (keys := [key for key in rows if key[0] < position]) else None
