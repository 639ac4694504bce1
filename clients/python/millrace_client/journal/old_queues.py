"""The old queues on this machine: `queue.db` and every `queues/queue-<16 hex>.db`, read without changing them (D10)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from millrace.ledger.domain.errors import BadRequest, Unavailable
from millrace_client.journal.migration_ports import Contents, OldQueue, Queued

LEGACY = "queue.db"
BUSY_SECONDS = 1.0

_SCOPED = re.compile(r"queue-([0-9a-f]{16})\.db")


@dataclass(frozen=True, slots=True)
class OldQueues:
    home: Path

    def find(self) -> Iterable[OldQueue]:
        legacy = self.home / LEGACY
        if legacy.is_file():
            yield OldQueue(str(legacy), "")
        folder = self.home / "queues"
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            match = _SCOPED.fullmatch(file.name)
            if match and file.is_file():
                yield OldQueue(str(file), match[1])

    def read(self, source: OldQueue) -> Contents:
        with _opened(Path(source.path), "ro") as connection:
            connection.execute("BEGIN")
            queued = [_queued(row) for row in connection.execute(_QUEUED)] if _has(connection, "queue") else []
            return Contents(
                queued, _count(connection, "body_upload_queue"), _count(connection, "body_upload_failure_log")
            )

    def clean(self, source: OldQueue, queued: Sequence[Queued]) -> int:
        with _opened(Path(source.path), "rw") as connection:
            connection.execute("BEGIN IMMEDIATE")
            cleaned = sum(
                connection.execute(
                    "DELETE FROM queue WHERE event_id = ? AND CAST(data AS BLOB) = ?", (row.event_id, row.data)
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
