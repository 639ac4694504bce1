"""The targets that a journal knows, and the state of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.targets import Blocked, Target, TargetState
from millrace_client.journal.sqlite import rows
from millrace_client.journal.sqlite.database import Database


@dataclass(frozen=True, slots=True)
class SqliteTargets:
    database: Database

    def get(self, target_id: str) -> TargetState:
        query = f"SELECT {rows.STATE} FROM delivery_target WHERE id = ?"
        row = self.database.connection.execute(query, (target_id,)).fetchone()
        return TargetState() if row is None else rows.state(row)

    def fare(self, target_id: str, circuit: Circuit, detail: str) -> None:
        self._set(
            target_id,
            "failures = ?, open_until_ms = ?, blocked = '', blocked_detail = ?, blocked_ms = 0",
            (circuit.failures, circuit.open_until_ms, detail),
        )

    def block(self, target_id: str, reason: Blocked, detail: str, now_ms: int) -> None:
        self._set(target_id, "blocked = ?, blocked_detail = ?, blocked_ms = ?", (reason.value, detail, now_ms))

    def pause(self, target_id: str, why: str) -> None:
        self._set(target_id, "paused_why = ?", (why,))

    def add(self, target: Target, now_ms: int, *, start_now: bool = False) -> Target:
        """
        Make it known, or take over what it wants now; where it starts is decided the first time.

        If it wants other types than before, its cursor goes back: what it has is skipped by its deliveries.
        """
        with self.database.transaction() as connection:
            connection.execute(
                "INSERT INTO delivery_target (id, kind, url, prefixes, start_at, added_ms) "
                "VALUES (?, ?, ?, ?, iif(?, (SELECT coalesce(max(position), 0) FROM event_journal), 0), ?) "
                "ON CONFLICT DO UPDATE SET kind = excluded.kind, url = excluded.url, prefixes = excluded.prefixes, "
                "through = iif(prefixes = excluded.prefixes, through, 0), forgotten_ms = NULL",
                (target.id, target.kind, target.url, json.dumps(sorted(target.prefixes)), start_now, now_ms),
            )
            connection.execute(
                "DELETE FROM delivery_missed WHERE target = ?1 AND position > (SELECT through FROM delivery_target "
                "WHERE id = ?1)",
                (target.id,),
            )
            query = f"SELECT {rows.TARGET} FROM delivery_target WHERE id = ?"
            return rows.target(connection.execute(query, (target.id,)).fetchone())

    def known(self) -> Sequence[Target]:
        return rows.known_targets(self.database.connection)

    def forget(self, target_id: str, now_ms: int) -> bool:
        """Its deliveries stay; it no longer holds back gc."""
        with self.database.transaction() as connection:
            changed = connection.execute(
                "UPDATE delivery_target SET forgotten_ms = ? WHERE id = ? AND forgotten_ms IS NULL", (now_ms, target_id)
            )
            return changed.rowcount == 1

    def _set(self, target_id: str, columns: str, values: tuple[object, ...]) -> None:
        with self.database.transaction() as connection:
            connection.execute(f"UPDATE delivery_target SET {columns} WHERE id = ?", (*values, target_id))
