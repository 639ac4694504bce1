"""In-memory stores that fail once when a test tells them to, before or after the call has taken effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from millrace.ledger.adapters.memory import MemoryLog
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Page
from millrace.streams.adapters.memory import MemoryRows
from millrace.streams.ports import Intent, VersionedRow
from tests.unit.streams.hub import StreamsHub

CRASHES = ["before put", "after put", "before append", "after append", "before settle", "after settle"]
MARKER_CRASHES = ["before leave", "after leave", *CRASHES, "before clear", "after clear"]

Answer = TypeVar("Answer")


class Crash(Unavailable):
    """A call that failed, as storage fails."""


class Death(Exception):
    """The end of the process: nothing after it is done."""


@dataclass(slots=True)
class Fuse:
    """Blows at one call of the stores that share it: `before put`, `after append`, …"""

    at: str = ""
    error: type[Exception] = Crash

    def around(self, name: str, call: Callable[[], Answer]) -> Answer:
        self._check(f"before {name}")
        answer = call()
        self._check(f"after {name}")
        return answer

    def _check(self, point: str) -> None:
        if self.at == point:
            self.at = ""
            raise self.error(point)


@dataclass(slots=True)
class CrashingLog(MemoryLog):
    fuse: Fuse = field(default_factory=Fuse)

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        return self.fuse.around("append", lambda: MemoryLog.append(self, ledger, page))


@dataclass(slots=True)
class CrashingRows(MemoryRows):
    fuse: Fuse = field(default_factory=Fuse)

    def put(self, group: str, key: str, row: VersionedRow) -> VersionedRow | None:
        return self.fuse.around("put", lambda: MemoryRows.put(self, group, key, row))

    def settle(self, group: str, key: str, version: int) -> None:
        self.fuse.around("settle", lambda: MemoryRows.settle(self, group, key, version))

    def leave(self, intent: Intent, now_ms: int) -> None:
        self.fuse.around("leave", lambda: MemoryRows.leave(self, intent, now_ms))

    def clear(self, intent: Intent) -> None:
        self.fuse.around("clear", lambda: MemoryRows.clear(self, intent))


def crashing_hub() -> tuple[StreamsHub, Fuse]:
    fuse = Fuse()
    return StreamsHub(log=CrashingLog(fuse=fuse), rows=CrashingRows(fuse=fuse)), fuse
