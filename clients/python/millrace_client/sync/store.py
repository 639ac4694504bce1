"""What a client must not forget, in SQLite: how far it has read, and which items may not be committed yet."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from millrace_client.errors import ClientError, Usage
from millrace_client.home import default_home
from millrace_client.sync.protocol import Json, compact

SCHEMA = """
CREATE TABLE IF NOT EXISTS millrace_cursor (
    url TEXT NOT NULL, project TEXT NOT NULL, subscription TEXT NOT NULL, position INTEGER NOT NULL,
    PRIMARY KEY (url, project, subscription)
);
CREATE TABLE IF NOT EXISTS millrace_outbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL, project TEXT NOT NULL, id TEXT NOT NULL,
    item TEXT NOT NULL, created REAL NOT NULL,
    UNIQUE (url, project, id)
);
"""

Hook = Callable[[sqlite3.Connection, Sequence[Json]], None]


class CursorMoved(ClientError):
    """Someone else moves the same cursor: two followers share a store and a subscription."""


def default_file(url: str, project: str, client_id: str) -> Path:
    """
    Where a client keeps its store unless it is told otherwise: one file per hub, project and client.

    Another client has another file: what one of them left to be sent must not go out with the token of another.
    Raises `Usage`.
    """
    folder = default_home() / "stores"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Usage(f"Cannot keep a store in {folder}: {error}. Name another place with `store`.") from error
    digest = hashlib.sha256(compact([url.rstrip("/"), project, client_id]).encode()).hexdigest()
    return folder / f"{digest[:16]}.db"


class Store:
    """
    One SQLite file, or `:memory:`; a commit is on the disk before it returns.

    `on_apply(connection, events)` runs in the transaction that moves the cursor past these events: what it writes
    through that connection is there exactly once, whatever crashes. It must not commit. Use a store from one thread.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        on_apply: Hook | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.on_apply = on_apply
        self.clock = clock
        try:
            self.connection = sqlite3.connect(path, isolation_level=None)
        except sqlite3.Error as error:
            raise Usage(f"Cannot open the store {path}: {error}") from error
        try:
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = FULL")
            self.connection.executescript(SCHEMA)
        except sqlite3.Error as error:
            self.connection.close()
            raise Usage(f"Cannot use the store {path}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def cursor(self, url: str, project: str, subscription: str, since: int = 0) -> Cursor:
        """The cursor of a subscription; `since` is where a new one starts."""
        return Cursor(self, (url.rstrip("/"), project, subscription), since)

    def outbox(self, url: str, project: str) -> Pending:
        return Pending(self, url.rstrip("/"), project)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything inside, or nothing."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.ProgrammingError as error:
            raise Usage(f"The store cannot be used: {error}") from error
        try:
            yield self.connection
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        if not self.connection.in_transaction:
            raise Usage("on_apply must not commit: the cursor belongs to the same transaction.")
        self.connection.execute("COMMIT")


class Cursor:
    """How far one subscription has come."""

    def __init__(self, store: Store, key: tuple[str, str, str], since: int) -> None:
        self._store = store
        self._key = key
        found = self._stored()
        self.is_new = found is None
        self.position = since if found is None else found

    def apply(self, events: Sequence[Json], cursor: int) -> None:
        """Deal with the events and move to `cursor`, both or neither. Raises `CursorMoved`."""
        if not events and cursor == self.position and not self.is_new:
            return
        with self._store.transaction() as connection:
            if self._stored() != (None if self.is_new else self.position):
                raise CursorMoved(f"Another follower moved the cursor of {self._key} away from {self.position}.")
            connection.execute("INSERT OR REPLACE INTO millrace_cursor VALUES (?, ?, ?, ?)", (*self._key, cursor))
            if self._store.on_apply is not None and events:
                self._store.on_apply(connection, events)
        self.is_new, self.position = False, cursor

    def _stored(self) -> int | None:
        row = self._store.connection.execute(
            "SELECT position FROM millrace_cursor WHERE url = ? AND project = ? AND subscription = ?", self._key
        ).fetchone()
        return None if row is None else int(row[0])


@dataclass(frozen=True, slots=True)
class Pending:
    """The submits of a project that have no result yet, in the order they were made."""

    store: Store
    url: str
    project: str

    def add(self, items: Sequence[Json]) -> None:
        """All of them, or none. Raises `Usage` if an id is pending with other content."""
        with self.store.transaction() as connection:
            for item in items:
                row = (self.url, self.project, item["id"], compact(item), self.store.clock())
                added = connection.execute(
                    "INSERT OR IGNORE INTO millrace_outbox (url, project, id, item, created) VALUES (?, ?, ?, ?, ?)",
                    row,
                )
                if not added.rowcount and self._item(item["id"]) != item:
                    raise Usage(f"{item['id']} is pending with other content.")

    def batch(self, items: int, size: int) -> list[Json]:
        """The oldest, as many as fit; at least one if there is one."""
        rows = self.store.connection.execute(
            "SELECT item FROM millrace_outbox WHERE url = ? AND project = ? ORDER BY number LIMIT ?",
            (self.url, self.project, items),
        ).fetchall()
        taken: list[Json] = []
        for (text,) in rows:
            size -= len(text.encode()) + 1
            if taken and size < 0:
                break
            taken.append(json.loads(text))
        return taken

    def remove(self, ids: Sequence[str]) -> None:
        with self.store.transaction() as connection:
            connection.executemany(
                "DELETE FROM millrace_outbox WHERE url = ? AND project = ? AND id = ?",
                [(self.url, self.project, event_id) for event_id in ids],
            )

    def ids(self) -> list[str]:
        rows = self.store.connection.execute(
            "SELECT id FROM millrace_outbox WHERE url = ? AND project = ? ORDER BY number", (self.url, self.project)
        )
        return [event_id for (event_id,) in rows]

    def _item(self, event_id: str) -> Json:
        [text] = self.store.connection.execute(
            "SELECT item FROM millrace_outbox WHERE url = ? AND project = ? AND id = ?",
            (self.url, self.project, event_id),
        ).fetchone()
        item: Json = json.loads(text)
        return item
