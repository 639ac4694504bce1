"""Which target has which event of the local journal: the delivery ledger, in SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from millrace.delivery.domain.families import Family
from millrace.delivery.domain.selection import Batch, NewEvent, OpenRun, Pick, Selection, choose
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.deliveries import START, Found, Place
from millrace_client.journal.sqlite import rows
from millrace_client.journal.sqlite.database import Database

LEDGER = "journal"
"""The local journal is one ledger."""

_BY = {Status.TRANSIENT: "INDEXED BY ledger_transient", Status.TERMINAL_FAILED: "INDEXED BY ledger_terminal"}
"""Said outright: the planner would rather walk a target's whole history than use a partial index."""


def _found_in(by: str) -> str:
    return (
        f"SELECT d.target, d.position, j.event_id, j.event_type, {rows.DELIVERY}"
        f" FROM delivery_ledger d {by} JOIN event_journal j USING (position) "
    )


def _open_in(by: str) -> str:
    return (
        f"SELECT d.position, j.event_id, b.body, {rows.DELIVERY} FROM delivery_ledger d {by} "
        "JOIN event_journal j USING (position) JOIN event_body b USING (position) WHERE d.target = ? "
    )


@dataclass(frozen=True, slots=True)
class SqliteLedger:
    database: Database

    def ledgers(self, target: Target, now_ms: int) -> Iterable[str]:  # noqa: ARG002
        return (LEDGER,)

    def select(self, target: Target, ledger: str, now_ms: int, events: int, size: int) -> Selection:  # noqa: ARG002
        cursor = self._through(target)
        return choose(
            target,
            Batch(events, size),
            now_ms,
            cursor,
            transient=self._transient(target),
            waiting=self._waiting(target, now_ms),
            new=self._new(target, cursor),
        )

    def begin(self, target: Target, ledger: str, picks: Sequence[Pick]) -> Sequence[Pick]:  # noqa: ARG002
        positions = json.dumps([pick.position for pick in picks])
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE event_journal SET attempted = 1 WHERE attempted = 0 AND superseded_by IS NULL "
                "AND position IN (SELECT value FROM json_each(?))",
                (positions,),
            )
            found = connection.execute(
                "SELECT position FROM event_journal WHERE superseded_by IS NOT NULL "
                "AND position IN (SELECT value FROM json_each(?))",
                (positions,),
            )
            replaced = {position for (position,) in found}
        return [pick for pick in picks if pick.position not in replaced]

    def record(self, target: Target, ledger: str, settled: Mapping[int, Delivery], through: int) -> None:  # noqa: ARG002
        with self.database.transaction() as connection:
            connection.executemany(
                "INSERT INTO delivery_ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "status = excluded.status, attempts = excluded.attempts, first_ms = excluded.first_ms, "
                "last_ms = excluded.last_ms, next_ms = excluded.next_ms, error = excluded.error "
                "WHERE status NOT IN ('success', 'duplicate')",
                [(target.id, position, *rows.columns(delivery)) for position, delivery in settled.items()],
            )
            self._note_missed(target, through)
            connection.execute(
                "UPDATE delivery_target SET through = max(through, ?) WHERE id = ?", (through, target.id)
            )

    def find(self, target_id: str, status: Status | None, after: Place = START, limit: int = 100) -> Sequence[Found]:
        where = "" if status is None else f"AND d.status = '{Status(status).value}'"
        by = _BY.get(status, "") if status else ""
        position = after[1] if after[0] == LEDGER else 0
        query = _found_in(by) + f"WHERE d.target = ? {where} AND d.position > ? ORDER BY d.position LIMIT ?"
        return [_found(row) for row in self.database.connection.execute(query, (target_id, position, limit))]

    def get(self, target_id: str, event_id: str) -> Found | None:
        query = _found_in("") + "WHERE d.target = ? AND j.event_id = ?"
        row = self.database.connection.execute(query, (target_id, event_id)).fetchone()
        return None if row is None else _found(row)

    def replace(self, found: Found, delivery: Delivery) -> bool:
        with self.database.transaction() as connection:
            changed = connection.execute(
                "UPDATE delivery_ledger SET status = ?, attempts = ?, first_ms = ?, last_ms = ?, next_ms = ?, error = ?"
                " WHERE target = ? AND position = ? AND (status, attempts, first_ms, last_ms, next_ms, error)"
                " IS (?, ?, ?, ?, ?, ?)",
                (*rows.columns(delivery), found.target_id, found.position, *rows.columns(found.delivery)),
            )
            return changed.rowcount == 1

    def _through(self, target: Target) -> int:
        row = self.database.connection.execute(
            "SELECT max(through, start_at) FROM delivery_target WHERE id = ?", (target.id,)
        ).fetchone()
        return 0 if row is None else int(row[0])

    def _note_missed(self, target: Target, through: int) -> None:
        """What the cursor passes and cannot be sent because it is archived, so that the drain can say so."""
        found = self.database.connection.execute(
            "SELECT j.position, j.event_type, j.family FROM event_journal j INDEXED BY journal_archived "
            "LEFT JOIN delivery_ledger d ON d.target = ? AND d.position = j.position WHERE j.removed_how = 'archive' "
            "AND j.position > ? AND j.position <= ? AND j.superseded_by IS NULL AND d.position IS NULL",
            (target.id, self._through(target), through),
        ).fetchall()
        self.database.connection.executemany(
            "INSERT OR IGNORE INTO delivery_missed VALUES (?, ?)",
            [(target.id, position) for position, kind, family in found if target.wants(kind, Family(family))],
        )

    def _transient(self, target: Target) -> Iterator[OpenRun]:
        query = _open_in(_BY[Status.TRANSIENT]) + "AND d.status = 'transient' ORDER BY d.position"
        return self._open(query, (target.id,))

    def _waiting(self, target: Target, now_ms: int) -> Iterator[OpenRun]:
        query = (
            _open_in("INDEXED BY ledger_waiting")
            + "AND d.status IN ('pending', 'rejected') AND d.next_ms <= ? ORDER BY d.next_ms"
        )
        return self._open(query, (target.id, now_ms))

    def _open(self, query: str, values: tuple[object, ...]) -> Iterator[OpenRun]:
        for position, event_id, body, *columns in self.database.connection.execute(query, values):
            delivery = _delivery(tuple(columns))
            yield OpenRun(delivery, [Pick(position, event_id, body, delivery)])

    def _new(self, target: Target, cursor: int) -> Iterator[NewEvent]:
        found = self.database.connection.execute(
            "SELECT j.position, j.event_id, j.event_type, j.family, b.body, d.status FROM event_journal j "
            "LEFT JOIN event_body b USING (position) "
            "LEFT JOIN delivery_ledger d ON d.target = ? AND d.position = j.position "
            "WHERE j.position > ? AND j.superseded_by IS NULL ORDER BY j.position",
            (target.id, cursor),
        )
        for position, event_id, event_type, family, body, status in found:
            pick = Pick(position, event_id, body) if body is not None and status is None else None
            yield NewEvent(position, event_type, Family(family), pick)


def _delivery(columns: rows.Row) -> Delivery:
    delivery = rows.delivery(columns)
    if delivery is None:
        raise AssertionError("the columns of a delivery are never null")
    return delivery


def _found(row: rows.Row) -> Found:
    return Found(row[0], LEDGER, row[1], row[2], row[3], _delivery(row[4:]))
