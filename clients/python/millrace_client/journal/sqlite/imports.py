"""What migration writes into the local journal: events with their provenance, and conflicts (D10)."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from millrace.delivery.domain.events import captured
from millrace.delivery.domain.families import Families
from millrace.ledger.domain.errors import Conflict, NotFound, Rejected
from millrace_client.journal.migration_ports import (
    Import,
    Imported,
    MigrationConflict,
    OldQueue,
    TwoContents,
    Unreadable,
)
from millrace_client.journal.sqlite import rows as stored_rows
from millrace_client.journal.sqlite.database import Database
from millrace_client.journal.sqlite.journal import insert, stored_digest, write_audit

DIVERGENT = "the journal has this id with other content"


@dataclass(frozen=True, slots=True)
class SqliteImports:
    database: Database

    def take(self, source: OldQueue, rows: Sequence[Import], unreadable: Sequence[Unreadable], now_ms: int) -> Imported:
        fresh = known = conflicts = 0
        with self.database.transaction() as connection:
            for row in rows:
                stored = stored_digest(connection, row.event.event_id)
                if stored is None:
                    insert(connection, row.event, row.family, now_ms)
                    fresh += 1
                elif stored == row.event.digest:
                    known += 1
                else:
                    conflicts += _conflict(connection, source, row.event.event_id, row.event.body, DIVERGENT, now_ms)
                    continue
                connection.execute(
                    "INSERT OR IGNORE INTO event_source VALUES (?, ?, ?, ?, ?, ?)",
                    (row.event.event_id, source.path, source.scope, row.timestamp, row.retry_count, now_ms),
                )
                _keep_deliveries(connection, row, now_ms)
            for bad in unreadable:
                conflicts += _conflict(connection, source, bad.event_id, bad.data, bad.reason, now_ms)
        return Imported(fresh, known, conflicts)

    def has(self, source: OldQueue, event_id: str, digest: bytes | None) -> bool:
        """Whether this journal has the event, or has had it from this source: taken, or as a conflict."""
        row = self.database.connection.execute(
            "SELECT 1 FROM event_source WHERE event_id = ?1 AND source = ?2 UNION ALL "
            "SELECT 1 FROM migration_conflict WHERE event_id = ?1 AND source = ?2 UNION ALL "
            "SELECT 1 FROM event_journal WHERE event_id = ?1 AND digest = ?3",
            (event_id, source.path, digest),
        ).fetchone()
        return row is not None

    def conflicts(self) -> Sequence[MigrationConflict]:
        found = self.database.connection.execute(
            "SELECT event_id, source, reason, found_ms, resolved FROM migration_conflict WHERE resolved = '' "
            "ORDER BY number"
        )
        return [MigrationConflict(*row) for row in found]

    def compare(self, event_id: str) -> Sequence[TwoContents]:
        found = self.database.connection.execute(
            "SELECT c.event_id, c.source, c.reason, c.found_ms, c.resolved, coalesce(c.journal_body, b.body), c.body "
            "FROM migration_conflict c LEFT JOIN event_journal j USING (event_id) "
            "LEFT JOIN event_body b ON b.position = j.position WHERE c.event_id = ? ORDER BY c.number",
            (event_id,),
        )
        return [TwoContents(MigrationConflict(*row[:5]), *row[5:]) for row in found]

    def resolve(self, event_id: str, keep: str, source: str | None, families: Families, now_ms: int) -> int:
        with self.database.transaction() as connection:
            open_ones = connection.execute(
                "SELECT number, source, body FROM migration_conflict WHERE event_id = ? AND resolved = '' "
                "ORDER BY number",
                (event_id,),
            ).fetchall()
            if not open_ones:
                raise NotFound("This event has no open migration conflict.", event_id=event_id)
            if keep == "source":
                open_ones = _only(open_ones, source, event_id)
                _put(connection, event_id, open_ones[0][2], families)
            for number, path, _ in open_ones:
                connection.execute(
                    "UPDATE migration_conflict SET resolved = ?, resolved_ms = ? WHERE number = ?",
                    (keep, now_ms, number),
                )
                write_audit(connection, f"conflict_resolved_{keep}", event_id, path, now_ms)
            return len(open_ones)


def _conflict(
    connection: sqlite3.Connection, source: OldQueue, event_id: str, body: bytes, reason: str, now_ms: int
) -> int:
    """1 if it is open; the same one is written once."""
    fingerprint = hashlib.sha256(body).digest()
    connection.execute(
        "INSERT OR IGNORE INTO migration_conflict (event_id, source, fingerprint, body, reason, found_ms) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (event_id, source.path, fingerprint, body, reason, now_ms),
    )
    [resolved] = connection.execute(
        "SELECT resolved FROM migration_conflict WHERE event_id = ? AND source = ? AND fingerprint = ?",
        (event_id, source.path, fingerprint),
    ).fetchone()
    return 0 if resolved else 1


def _only(found: list[tuple[int, str, bytes]], source: str | None, event_id: str) -> list[tuple[int, str, bytes]]:
    named = [row for row in found if source in (None, row[1])]
    if not named:
        raise NotFound("This event has no open migration conflict with this source.", event_id=event_id)
    if len(named) > 1:
        raise Conflict("Several sources have their own content for this event: name one.", event_id=event_id)
    return named


def _put(connection: sqlite3.Connection, event_id: str, body: bytes, families: Families) -> None:
    """
    The source's content into the journal, while nobody has been sent the journal's, which stays under the conflicts.

    It may have another type, so its family is decided anew, and every target looks at it again.
    """
    try:
        event = captured(body)
    except Rejected as error:
        raise Conflict(f"The source's content cannot be kept: {error.message}", event_id=event_id) from error
    if event.event_id != event_id:
        raise Conflict("The source's content has another event id, and ids are never rewritten.", event_id=event_id)
    row = connection.execute(
        "SELECT position, attempted, superseded_by, removed_ms FROM event_journal WHERE event_id = ?", (event_id,)
    ).fetchone()
    if row is None:
        raise Conflict("The journal has no such event; migrate again instead.", event_id=event_id)
    position, attempted, superseded_by, removed_ms = row
    if attempted or superseded_by is not None or removed_ms is not None:
        raise Conflict(
            "A delivery of the journal's content has begun, so it is frozen: keep the journal's.", event_id=event_id
        )
    connection.execute(
        "UPDATE migration_conflict SET journal_body = (SELECT body FROM event_body WHERE position = ?) "
        "WHERE event_id = ? AND journal_body IS NULL",
        (position, event_id),
    )
    connection.execute(
        "UPDATE event_journal SET event_type = ?, family = ?, digest = ?, size = ? WHERE position = ?",
        (event.event_type, families.of(event.event_type).value, event.digest, len(body), position),
    )
    connection.execute("UPDATE event_body SET body = ? WHERE position = ?", (body, position))
    connection.execute("UPDATE delivery_target SET through = min(through, ?)", (position - 1,))


def _keep_deliveries(connection: sqlite3.Connection, row: Import, now_ms: int) -> None:
    """Under a name that is no target of ours: whether it is the same place, nobody knows. Its bytes are frozen (D5)."""
    [position] = connection.execute(
        "SELECT position FROM event_journal WHERE event_id = ?", (row.event.event_id,)
    ).fetchone()
    for name, delivery in row.deliveries.items():
        target = f"{stored_rows.UNKNOWN_TARGET}:{name}"
        connection.execute(
            "INSERT OR IGNORE INTO delivery_target (id, kind, url, prefixes, start_at, added_ms) "
            "VALUES (?, ?, '', '[]', 0, ?)",
            (target, stored_rows.UNKNOWN_TARGET, now_ms),
        )
        connection.execute(
            "INSERT OR IGNORE INTO delivery_ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (target, position, *stored_rows.columns(delivery)),
        )
        if delivery.attempts:
            connection.execute("UPDATE event_journal SET attempted = 1 WHERE position = ?", (position,))
