"""Queues and journals as the tools in use leave them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

TABLES = """
CREATE TABLE queue (id INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT UNIQUE NOT NULL, event_type TEXT NOT NULL,
    data TEXT NOT NULL, timestamp INTEGER NOT NULL, retry_count INTEGER NOT NULL DEFAULT 0, coalesce_key TEXT);
CREATE TABLE body_upload_queue (id INTEGER PRIMARY KEY, path TEXT);
CREATE TABLE body_upload_failure_log (id INTEGER PRIMARY KEY, path TEXT);
"""

JOURNAL = """
CREATE TABLE event_journal (event_id TEXT PRIMARY KEY, event_type TEXT NOT NULL, payload BLOB NOT NULL,
    occurred_at TEXT NOT NULL, created_at TEXT NOT NULL, coalesce_key TEXT, archived_at TEXT,
    drain_blocked_reason TEXT);
"""
LEDGER = """
CREATE TABLE delivery_ledger (event_id TEXT NOT NULL, target_id TEXT NOT NULL, status TEXT NOT NULL,
    attempt_count INTEGER NOT NULL DEFAULT 0, first_attempted_at TEXT, last_attempted_at TEXT, last_error TEXT,
    PRIMARY KEY (event_id, target_id));
"""


def scoped(home: Path, digit: str) -> Path:
    return home / "queues" / f"queue-{digit * 16}.db"


def old_queue(path: Path, *events: dict[str, Any] | tuple[str, str], uploads: int = 0, failures: int = 0) -> Path:
    """An event, or an id and any text as its data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES)
        for event in events:
            id_, data = event if isinstance(event, tuple) else (event["event_id"], json.dumps(event))
            connection.execute(
                "INSERT INTO queue (event_id, event_type, data, timestamp, retry_count, coalesce_key) "
                "VALUES (?, 'note', ?, 7, 2, 'the same')",
                (id_, data),
            )
        connection.executemany("INSERT INTO body_upload_queue (path) VALUES (?)", [("x",)] * uploads)
        connection.executemany("INSERT INTO body_upload_failure_log (path) VALUES (?)", [("x",)] * failures)
    return path


def note(event_id: str, **more: Any) -> dict[str, Any]:
    return {"event_id": event_id, "event_type": "note", **more}


def queued(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [id_ for (id_,) in connection.execute("SELECT event_id FROM queue ORDER BY id")]


def old_journal(
    path: Path, *events: dict[str, Any] | tuple[str, str], deliveries: dict[tuple[str, str], str] | None = None
) -> Path:
    """Captured one second apart, in this order. `deliveries`: (event, target) → status; None: it has no such table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(JOURNAL + (LEDGER if deliveries is not None else ""))
        for second, event in enumerate(events):
            id_, payload = event if isinstance(event, tuple) else (event["event_id"], json.dumps(event))
            at = f"2026-06-29T00:00:{second:02}+00:00"
            connection.execute(
                "INSERT INTO event_journal VALUES (?, 'note', ?, ?, ?, 'the same', NULL, 'missing_auth')",
                (id_, payload.encode(), at, at),
            )
        for (event_id, target), status in (deliveries or {}).items():
            connection.execute(
                "INSERT INTO delivery_ledger VALUES (?, ?, ?, 3, '2026-06-29T00:00:00+00:00', "
                "'2026-06-29T00:01:00+00:00', 'why')",
                (event_id, target, status),
            )
    return path


def journaled(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [id_ for (id_,) in connection.execute("SELECT event_id FROM event_journal ORDER BY created_at")]
