"""The local journal in SQLite: keeps events byte for byte, and has the only ways to remove their bytes (D2, D3, D5)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from millrace.delivery.domain.events import Captured
from millrace.delivery.domain.families import Families, Family
from millrace.delivery.domain.states import Delivery
from millrace.delivery.domain.targets import Target
from millrace.ledger.domain.errors import Conflict
from millrace_client.journal.ports import ArchivedPayload, Retained, Taken
from millrace_client.journal.sqlite import rows
from millrace_client.journal.sqlite.database import Database

PAGE = 500
RESTORED = "archive_restored"


@dataclass(frozen=True, slots=True)
class SqliteJournal:
    """`awaited`: targets that are configured but not yet known here; what they want is not removed either."""

    database: Database
    awaited: Sequence[Target] = ()

    def capture(self, events: Sequence[tuple[Captured, Family]], now_ms: int) -> Sequence[Taken]:
        with self.database.transaction() as connection:
            return [_take(connection, event, family, now_ms) for event, family in events]

    def audit(self, what: str, subjects: Sequence[str], detail: str, now_ms: int) -> None:
        with self.database.transaction() as connection:
            for subject in subjects:
                write_audit(connection, what, subject, detail, now_ms)

    def decide(self, families: Families) -> int:
        """Give the events whose family could not be told a family, and let every target look at them again."""
        with self.database.transaction() as connection:
            undecided = connection.execute(
                "SELECT position, event_type FROM event_journal WHERE family = 'undecided' ORDER BY position"
            ).fetchall()
            if undecided:
                connection.executemany(
                    "UPDATE event_journal SET family = ? WHERE position = ?",
                    [(families.of(event_type).value, position) for position, event_type in undecided],
                )
                connection.execute("UPDATE delivery_target SET through = min(through, ?)", (undecided[0][0] - 1,))
            return len(undecided)

    def retained(self) -> Iterator[Retained]:
        """A page at a time, so that removing what was read does not disturb the reading."""
        targets = [*rows.known_targets(self.database.connection), *self.awaited]
        after = 0
        while page := self._page(targets, after):
            yield from page
            after = page[-1].position

    def bodies(self, positions: Sequence[int]) -> Mapping[int, bytes]:
        found: dict[int, bytes] = {}
        for position in positions:
            row = self.database.connection.execute("SELECT body FROM event_body WHERE position = ?", (position,))
            [found[position]] = row.fetchone()
        return found

    def remove(self, positions: Sequence[int], how: str, where: str, now_ms: int) -> None:
        with self.database.transaction() as connection:
            connection.executemany("DELETE FROM event_body WHERE position = ?", [(one,) for one in positions])
            connection.executemany(
                "UPDATE event_journal SET removed_ms = ?, removed_how = ?, removed_to = ? WHERE position = ?",
                [(now_ms, how, where, one) for one in positions],
            )

    def archived(self) -> Sequence[ArchivedPayload]:
        found = self.database.connection.execute(
            "SELECT position, event_id, size, digest, removed_to FROM event_journal INDEXED BY journal_archived "
            "WHERE removed_how = 'archive' ORDER BY position"
        )
        return [ArchivedPayload(*row) for row in found]

    def restore(self, bodies: Mapping[int, bytes], where: str, now_ms: int) -> None:
        with self.database.transaction() as connection:
            connection.executemany("INSERT INTO event_body VALUES (?, ?)", bodies.items())
            connection.executemany(
                "UPDATE event_journal SET removed_ms = NULL, removed_how = NULL, removed_to = NULL WHERE position = ?",
                [(position,) for position in bodies],
            )
            connection.execute(
                "DELETE FROM delivery_missed WHERE position IN (SELECT value FROM json_each(?))",
                (json.dumps(list(bodies)),),
            )
            connection.execute("UPDATE delivery_target SET through = min(through, ?)", (min(bodies) - 1,))
            write_audit(connection, RESTORED, where, f"{len(bodies)} events", now_ms)

    def _page(self, targets: Sequence[Target], after: int) -> list[Retained]:
        found = self.database.connection.execute(
            "SELECT j.position, j.event_id, j.event_type, j.captured_ms, j.size, j.superseded_by, j.family "
            "FROM event_body b JOIN event_journal j USING (position) WHERE b.position > ? ORDER BY b.position LIMIT ?",
            (after, PAGE),
        ).fetchall()
        return [
            Retained(
                position,
                event_id,
                event_type,
                captured_ms,
                size,
                superseded_by is not None,
                self._deliveries(targets, position, event_type, family, superseded_by),
            )
            for position, event_id, event_type, captured_ms, size, superseded_by, family in found
        ]

    def _deliveries(
        self, targets: Sequence[Target], position: int, event_type: str, family: str, superseded_by: str | None
    ) -> dict[str, Delivery | None]:
        while superseded_by is not None:
            heir = self.database.connection.execute(
                "SELECT position, event_type, family, superseded_by FROM event_journal WHERE event_id = ?",
                (superseded_by,),
            ).fetchone()
            if heir is None:
                break
            position, event_type, family, superseded_by = heir
        wanting = [one for one in targets if one.wants(event_type, Family(family)) and position > one.start_at]
        return {one.id: self._delivery(one.id, position) for one in wanting}

    def _delivery(self, target_id: str, position: int) -> Delivery | None:
        query = f"SELECT {rows.DELIVERY} FROM delivery_ledger d WHERE d.target = ? AND d.position = ?"
        row = self.database.connection.execute(query, (target_id, position)).fetchone()
        return None if row is None else rows.delivery(row)


def insert(connection: sqlite3.Connection, event: Captured, family: Family, now_ms: int) -> str | None:
    """A new event; returns the id of the one it replaced, if an unattempted one had its coalesce key."""
    replaced = None
    if event.coalesce_key is not None:
        row = connection.execute(
            "SELECT event_id FROM event_journal WHERE coalesce_key = ? AND superseded_by IS NULL AND attempted = 0 "
            "AND removed_ms IS NULL",
            (event.coalesce_key,),
        ).fetchone()
        replaced = None if row is None else str(row[0])
    position = connection.execute(
        "INSERT INTO event_journal (event_id, event_type, family, coalesce_key, digest, size, captured_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (event.event_id, event.event_type, family.value, event.coalesce_key, event.digest, len(event.body), now_ms),
    ).lastrowid
    connection.execute("INSERT INTO event_body VALUES (?, ?)", (position, event.body))
    if replaced is not None:
        connection.execute("UPDATE event_journal SET superseded_by = ? WHERE event_id = ?", (event.event_id, replaced))
    return replaced


def stored_digest(connection: sqlite3.Connection, event_id: str) -> bytes | None:
    row = connection.execute("SELECT digest FROM event_journal WHERE event_id = ?", (event_id,)).fetchone()
    return None if row is None else bytes(row[0])


def write_audit(connection: sqlite3.Connection, what: str, subject: str, detail: str, now_ms: int) -> None:
    connection.execute(
        "INSERT INTO audit (at_ms, what, subject, detail) VALUES (?, ?, ?, ?)", (now_ms, what, subject, detail)
    )


def _take(connection: sqlite3.Connection, event: Captured, family: Family, now_ms: int) -> Taken:
    stored = stored_digest(connection, event.event_id)
    if stored is None:
        return Taken(event.event_id, True, insert(connection, event, family, now_ms))
    if stored != event.digest:
        raise Conflict("An event with this id and other content is in the journal.", event_id=event.event_id)
    return Taken(event.event_id, False)
