"""Taking over a journal: what was captured before anybody was known moves to the first producer that is (D1)."""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from millrace_client.journal.sqlite.database import Database, run_all
from millrace_client.journal.sqlite.imports import DIVERGENT
from millrace_client.journal.sqlite.journal import write_audit

TAKEN_OVER = "journal_taken_over"

_SAME = "JOIN main.event_journal m ON m.event_id = o.event_id AND m.digest = o.digest"

_COPY = f"""
INSERT INTO main.event_journal (event_id, event_type, family, coalesce_key, digest, size, captured_ms, attempted,
    superseded_by, removed_ms, removed_how, removed_to)
SELECT event_id, event_type, family, coalesce_key, digest, size, captured_ms, attempted,
    superseded_by, removed_ms, removed_how, removed_to
FROM other.event_journal o
WHERE NOT EXISTS (SELECT 1 FROM main.event_journal m WHERE m.event_id = o.event_id) ORDER BY position;
INSERT OR IGNORE INTO main.event_body
SELECT m.position, b.body FROM other.event_journal o JOIN other.event_body b USING (position) {_SAME}
WHERE m.removed_ms IS NULL;
UPDATE main.event_journal AS m SET attempted = 1 WHERE attempted = 0 AND superseded_by IS NULL AND EXISTS
    (SELECT 1 FROM other.event_journal o WHERE o.event_id = m.event_id AND o.digest = m.digest AND o.attempted = 1);
INSERT INTO main.delivery_ledger
SELECT d.target, m.position, d.status, d.attempts, d.first_ms, d.last_ms, d.next_ms, d.error
FROM other.delivery_ledger d JOIN other.event_journal o USING (position) {_SAME} WHERE true
ON CONFLICT DO UPDATE SET status = excluded.status, attempts = excluded.attempts, first_ms = excluded.first_ms,
    last_ms = excluded.last_ms, next_ms = excluded.next_ms, error = excluded.error
    WHERE status NOT IN ('success', 'duplicate');
INSERT OR IGNORE INTO main.delivery_target
SELECT t.id, t.kind, t.url, t.prefixes,
    iif(t.start_at = 0, 0, coalesce(
        (SELECT max(m.position) FROM other.event_journal o {_SAME} WHERE o.position <= t.start_at),
        (SELECT max(position) FROM main.event_journal), 0)),
    t.added_ms, 0, t.failures, t.open_until_ms, t.paused_why, t.blocked, t.blocked_detail, t.blocked_ms, t.forgotten_ms
FROM other.delivery_target t;
INSERT OR IGNORE INTO main.event_source
SELECT s.* FROM other.event_source s JOIN other.event_journal o USING (event_id) {_SAME};
INSERT OR IGNORE INTO main.migration_conflict
    (event_id, source, fingerprint, body, reason, found_ms, resolved, resolved_ms, journal_body)
SELECT event_id, source, fingerprint, body, reason, found_ms, resolved, resolved_ms, journal_body
FROM other.migration_conflict ORDER BY number;
INSERT INTO main.audit (at_ms, what, subject, detail)
SELECT at_ms, what, subject, detail FROM other.audit o WHERE NOT EXISTS (SELECT 1 FROM main.audit m
    WHERE (m.at_ms, m.what, m.subject, m.detail) = (o.at_ms, o.what, o.subject, o.detail)) ORDER BY number
"""
"""Events come in their order, behind what is here. A target that starts with what comes now does not get what was
there before it, wherever that is now; its cursor goes back, since what it has is passed over by its deliveries."""

_CLEAR = f"""
DELETE FROM other.event_body WHERE position IN (SELECT o.position FROM other.event_journal o {_SAME});
DELETE FROM other.delivery_ledger WHERE position IN (SELECT o.position FROM other.event_journal o {_SAME});
DELETE FROM other.event_journal WHERE position IN (SELECT o.position FROM other.event_journal o {_SAME});
DELETE FROM other.event_source WHERE event_id NOT IN (SELECT event_id FROM other.event_journal);
DELETE FROM other.migration_conflict;
DELETE FROM other.audit;
DELETE FROM other.drain_block;
DELETE FROM other.delivery_missed;
DELETE FROM other.delivery_target WHERE NOT EXISTS (SELECT 1 FROM other.event_journal)
"""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """`database` is the journal of the producer that is known."""

    database: Database

    def __call__(self, path: Path, now_ms: int) -> int:
        """
        Move everything that a journal holds here, with its deliveries and its history; returns how many events.

        Captures into either journal wait meanwhile. Who dies in between leaves the same events in both, and the next
        time removes them there. What has the same id and other content stays there, and is a conflict here.
        """
        with Database(path) as other:
            [found] = other.connection.execute(
                "SELECT (SELECT count(*) FROM event_journal) + (SELECT count(*) FROM audit) "
                "+ (SELECT count(*) FROM drain_block) + (SELECT count(*) FROM migration_conflict)"
            ).fetchone()
        if not found:
            return 0
        connection = self.database.connection
        connection.execute("ATTACH ? AS other", (str(path),))
        try:
            with self.database.transaction():
                return _move(connection, path, now_ms)
        finally:
            connection.execute("DETACH other")


def _move(connection: sqlite3.Connection, path: Path, now_ms: int) -> int:
    before = _count(connection, "other.event_journal")
    run_all(connection, _COPY)
    _divergent(connection, path, now_ms)
    run_all(connection, _CLEAR)
    moved = before - _count(connection, "other.event_journal")
    if moved:
        write_audit(connection, TAKEN_OVER, str(path), f"{moved} events", now_ms)
    return moved


def _divergent(connection: sqlite3.Connection, path: Path, now_ms: int) -> None:
    rows = connection.execute(
        "SELECT o.event_id, b.body FROM other.event_journal o JOIN other.event_body b USING (position) "
        "JOIN main.event_journal m ON m.event_id = o.event_id AND m.digest <> o.digest"
    ).fetchall()
    connection.executemany(
        "INSERT OR IGNORE INTO main.migration_conflict (event_id, source, fingerprint, body, reason, found_ms) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        [(id_, str(path), hashlib.sha256(body).digest(), body, DIVERGENT, now_ms) for id_, body in rows],
    )


def _count(connection: sqlite3.Connection, table: str) -> int:
    [count] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(count)
