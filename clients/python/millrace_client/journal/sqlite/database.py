"""The journal's file: SQLite in WAL mode, on the disk at every commit, opened by any number of processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from millrace_client.errors import Usage

VERSION = 2
BUSY_SECONDS = 30

SCHEMA = """
CREATE TABLE event_journal (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id TEXT NOT NULL UNIQUE,
    event_type TEXT NOT NULL,
    family TEXT NOT NULL,
    coalesce_key TEXT,
    digest BLOB NOT NULL,
    size INTEGER NOT NULL,
    captured_ms INTEGER NOT NULL,
    attempted INTEGER NOT NULL DEFAULT 0,
    superseded_by TEXT,
    removed_ms INTEGER,
    removed_how TEXT,
    removed_to TEXT
);
CREATE INDEX journal_coalesce ON event_journal (coalesce_key)
    WHERE coalesce_key IS NOT NULL AND superseded_by IS NULL AND attempted = 0;
CREATE INDEX journal_undecided ON event_journal (position) WHERE family = 'undecided';
CREATE INDEX journal_archived ON event_journal (position) WHERE removed_how = 'archive';
CREATE TABLE event_body (position INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE delivery_target (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    url TEXT NOT NULL,
    prefixes TEXT NOT NULL,
    start_at INTEGER NOT NULL,
    added_ms INTEGER NOT NULL,
    through INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    open_until_ms INTEGER NOT NULL DEFAULT 0,
    paused_why TEXT NOT NULL DEFAULT '',
    blocked TEXT NOT NULL DEFAULT '',
    blocked_detail TEXT NOT NULL DEFAULT '',
    blocked_ms INTEGER NOT NULL DEFAULT 0,
    forgotten_ms INTEGER
);
CREATE TABLE delivery_ledger (
    target TEXT NOT NULL,
    position INTEGER NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    first_ms INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    next_ms INTEGER,
    error TEXT NOT NULL,
    PRIMARY KEY (target, position)
) WITHOUT ROWID;
CREATE INDEX ledger_transient ON delivery_ledger (target, position) WHERE status = 'transient';
CREATE INDEX ledger_waiting ON delivery_ledger (target, next_ms) WHERE status IN ('pending', 'rejected');
CREATE INDEX ledger_terminal ON delivery_ledger (target, position) WHERE status = 'terminal_failed';
CREATE TABLE event_source (
    event_id TEXT NOT NULL,
    source TEXT NOT NULL,
    scope TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    retry_count INTEGER NOT NULL,
    imported_ms INTEGER NOT NULL,
    PRIMARY KEY (event_id, source)
) WITHOUT ROWID;
CREATE TABLE migration_conflict (
    number INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL,
    source TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    body BLOB NOT NULL,
    reason TEXT NOT NULL,
    found_ms INTEGER NOT NULL,
    resolved TEXT NOT NULL DEFAULT '',
    resolved_ms INTEGER,
    journal_body BLOB,
    UNIQUE (event_id, source, fingerprint)
);
CREATE TABLE drain_block (
    scope TEXT PRIMARY KEY, reason TEXT NOT NULL, detail TEXT NOT NULL, since_ms INTEGER NOT NULL
);
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    what TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE TABLE delivery_missed (
    target TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (target, position)
) WITHOUT ROWID;
CREATE TABLE journal_owner (user_id TEXT NOT NULL, team_slug TEXT NOT NULL);
"""

FROM_1_TO_2 = """
CREATE INDEX journal_archived ON event_journal (position) WHERE removed_how = 'archive';
ALTER TABLE migration_conflict ADD COLUMN journal_body BLOB;
CREATE TABLE delivery_missed (
    target TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (target, position)
) WITHOUT ROWID;
CREATE TABLE journal_owner (user_id TEXT NOT NULL, team_slug TEXT NOT NULL);
UPDATE delivery_target SET through = 0;
"""
"""The cursors go back once, so that the next drain notes what was archived before a target had it."""


def run_all(connection: sqlite3.Connection, script: str) -> None:
    """Inside the transaction that is open, which `executescript` would end."""
    for statement in script.split(";\n"):
        if statement.strip():
            connection.execute(statement)


class Database:
    """One connection; use it from one thread. A process that dies leaves the last commit, and nothing half."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)
        except (OSError, sqlite3.Error) as error:
            raise Usage(f"Cannot open the journal {path}: {error}") from error
        try:
            path.chmod(0o600)
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = FULL")
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            self.connection.close()
            raise Usage(f"Cannot use the journal {path}: {error}") from error
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything inside, or nothing; no other process writes meanwhile."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def _prepare(self) -> None:
        if self._version() == VERSION:
            return
        with self.transaction() as connection:
            found = self._version()
            if found > VERSION:
                raise Usage(f"The journal {self.path} was written by a newer version of this command.")
            run_all(connection, {0: SCHEMA, 1: FROM_1_TO_2}.get(found, ""))
            connection.execute(f"PRAGMA user_version = {VERSION}")

    def _version(self) -> int:
        [version] = self.connection.execute("PRAGMA user_version").fetchone()
        return int(version)
