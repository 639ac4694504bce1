"""Open tables in memory, for tests and as the plainest statement of the contract."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from threading import Lock

from millrace.lake.ports.open_tables import Shown


class MemoryOpenTables:
    """`rows_in` tells how many rows a file has."""

    def __init__(self, rows_in: Callable[[str], int]) -> None:
        self.rows_in = rows_in
        self.history: dict[str, list[tuple[int, Shown]]] = {}
        self.clock: Callable[[], int] = lambda: 0
        self._tags = itertools.count(1)
        self._lock = Lock()

    def shown(self, table: str) -> Shown | None:
        return self.history[table][-1][1] if table in self.history else None

    def show(self, table: str, over: Shown | None, files: Collection[str], run: str) -> bool:
        with self._lock:
            if self.shown(table) != over:
                return False
            rows = sum(map(self.rows_in, files))
            self.history.setdefault(table, []).append(
                (self.clock(), Shown(frozenset(files), rows, run, str(next(self._tags))))
            )
            return True

    def forget(self, table: str, before_ms: int) -> int:
        with self._lock:
            past = self.history.get(table, [])[:-1]
            old = [one for one in past if one[0] < before_ms]
            if table in self.history:
                self.history[table] = [one for one in self.history[table] if one not in old]
            return len(old)
