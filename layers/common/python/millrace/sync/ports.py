"""What the sync contract needs beside the ledger: an index of its partitions. Each docstring is the contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from millrace.ledger.domain.names import Ledger


@dataclass(frozen=True, slots=True)
class Hit:
    """An indexed event: its position and the first position of its page."""

    position: int
    page: int


@dataclass(frozen=True, slots=True)
class IndexRow:
    """All hits of one partition in the positions `start`..`end`, which one index run covered."""

    partition: str
    start: int
    end: int
    hits: Sequence[Hit]


@dataclass(frozen=True, slots=True)
class IndexRows:
    """Rows in order of `end`. `truncated`: further rows exist, all with a greater end."""

    rows: Sequence[IndexRow]
    truncated: bool = False


class PartitionIndex(Protocol):
    def write(self, ledger: Ledger, rows: Sequence[IndexRow]) -> None:
        """Store all rows; returns only when every one is durable. The same row again changes nothing."""

    def read(self, ledger: Ledger, partition: str, after: int, limit: int) -> IndexRows:
        """Up to `limit` rows whose `end` is above `after`, strongly consistent."""

    def before(self, ledger: Ledger, partition: str, position: int) -> IndexRow | None:
        """The row with the greatest `end` below `position`, strongly consistent."""
