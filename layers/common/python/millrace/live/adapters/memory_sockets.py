"""Open connections in memory, as an operator sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millrace.live.adapters.memory import MemoryPlaces
from millrace.live.ports import OpenSocket


@dataclass(frozen=True, slots=True)
class MemoryOpenSockets:
    places: MemoryPlaces

    def page(self, tenant: str, after: str, limit: int) -> Sequence[str]:
        known = self.places.connections.rows
        taken = {id_ for of, id_, name in self.places.taken if of == tenant and not name and id_ in known}
        return sorted(id_ for id_ in taken if id_ > after)[:limit]

    def look(self, connection: str) -> OpenSocket | None:
        row = self.places.connections.rows.get(connection)
        if row is None or row.connection.identity is None:
            return None
        rows = self.places.subscriptions.rows
        return OpenSocket(row.connection, sorted((id_, rows[of, id_].ledger) for of, id_ in rows if of == connection))
