"""Old queues and journals on this machine, read without changing them (D10).

They are `queue.db`, every `queues/queue-<16 hex>.db`, and every `event_journal/journal-*.db`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from millrace.ledger.domain.errors import BadRequest, Unavailable
from millrace_client.journal import old_journal
from millrace_client.journal.migration_ports import Contents, OldQueue, Queued

LEGACY = "queue.db"
BUSY_SECONDS = 1.0

_SCOPED = re.compile(r"queue-([0-9a-f]{16})\.db")
_JOURNAL = re.compile(r"journal-(.+)\.db")
_SIDE_FILE = re.compile(r".+\.db-(wal|shm|journal)")
_FOLDERS = {"queues": _SCOPED, "event_journal": _JOURNAL}


@dataclass(frozen=True, slots=True)
class OldQueues:
    home: Path

    def find(self) -> Iterable[OldQueue]:
        legacy = self.home / LEGACY
        if legacy.is_file():
            yield OldQueue(str(legacy), "")
        for folder, name in _FOLDERS.items():
            for file in self._files(folder):
                if match := name.fullmatch(file.name):
                    yield OldQueue(str(file), match[1], name is _JOURNAL)

    def strangers(self) -> Sequence[str]:
        return [
            str(file)
            for folder, name in _FOLDERS.items()
            for file in self._files(folder)
            if not name.fullmatch(file.name) and not _SIDE_FILE.fullmatch(file.name)
        ]

    def _files(self, folder: str) -> list[Path]:
        place = self.home / folder
        return [file for file in sorted(place.iterdir()) if file.is_file()] if place.is_dir() else []

    def read(self, source: OldQueue) -> Contents:
        with _opened(Path(source.path), "ro") as connection:
            connection.execute("BEGIN")
            if source.is_journal:
                return Contents(old_journal.read(connection), 0, 0)
            queued = [_queued(row) for row in connection.execute(_QUEUED)] if _has(connection, "queue") else []
            return Contents(
                queued, _count(connection, "body_upload_queue"), _count(connection, "body_upload_failure_log")
            )

    def clean(self, source: OldQueue, queued: Sequence[Queued]) -> int:
        with _opened(Path(source.path), "rw") as connection:
            connection.execute("BEGIN IMMEDIATE")
            table, column = ("event_journal", "payload") if source.is_journal else ("queue", "data")
            cleaned = sum(
                connection.execute(
                    f"DELETE FROM {table} WHERE event_id = ? AND CAST({column} AS BLOB) = ?", (row.event_id, row.data)
                ).rowcount
                for row in queued
            )
            connection.execute("COMMIT")
            return cleaned


_QUEUED = "SELECT event_id, event_type, CAST(data AS BLOB), timestamp, retry_count FROM queue ORDER BY id"


def counts(path: Path) -> tuple[int, int] | None:
    """Events and body uploads of an old queue; None if it is not there or cannot be read."""
    if not path.is_file():
        return None
    try:
        with _opened(path, "ro") as connection:
            return _count(connection, "queue"), _count(connection, "body_upload_queue")
    except (BadRequest, Unavailable):
        return None


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    try:
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_SECONDS)) as connection:
            yield connection
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise Unavailable("It is locked by another process; it was left untouched.") from error
        raise BadRequest(f"It cannot be read ({error}); it was left untouched.") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise BadRequest(f"It is corrupt ({error}); it was left untouched.") from error


def _has(connection: sqlite3.Connection, table: str) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(query, (table,)).fetchone() is not None


def _count(connection: sqlite3.Connection, table: str) -> int:
    if not _has(connection, table):
        return 0
    [count] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(count)


def _queued(row: tuple[object, ...]) -> Queued:
    event_id, event_type, data, timestamp, retry_count = row
    return Queued(
        str(event_id),
        str(event_type),
        data if isinstance(data, bytes) else b"",
        "" if timestamp is None else str(timestamp),
        retry_count if isinstance(retry_count, int) else 0,
    )
