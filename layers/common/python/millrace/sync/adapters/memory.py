"""The partition index and the profiles of projects in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from millrace.ledger.domain.names import Ledger
from millrace.sync.ports import IndexRow, IndexRows, ProfilePage


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


@dataclass(slots=True)
class MemoryProfiles:
    rows: dict[tuple[str, str], str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def get(self, tenant: str, project: str) -> str | None:
        with self.lock:
            return self.rows.get((tenant, project))

    def put(self, tenant: str, project: str, profile: str | None) -> None:
        with self.lock:
            self.rows.pop((tenant, project), None)
            if profile is not None:
                self.rows[tenant, project] = profile

    def page(self, tenant: str, after: str, limit: int) -> ProfilePage:
        with self.lock:
            names = sorted(project for of, project in self.rows if of == tenant and project > after)
            found = {name: self.rows[tenant, name] for name in names[:limit]}
        return ProfilePage(found, names[limit - 1] if len(names) > limit else None)
