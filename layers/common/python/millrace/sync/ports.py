"""What the sync contract needs beside the ledger: an index of its partitions, and profiles of projects. Each docstring
is the contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class ProfilePage:
    """Profiles by project, in order of the names, and the name to go on after; None at the end."""

    profiles: Mapping[str, str]
    after: str | None


class Profiles(Protocol):
    """Which profile an operator gave to which project of a tenant."""

    def get(self, tenant: str, project: str) -> str | None:
        """None if none was given. What was put a moment ago may be missing."""

    def put(self, tenant: str, project: str, profile: str | None) -> None:
        """Replaces the last one; None takes it away. Durable when it returns."""

    def page(self, tenant: str, after: str, limit: int) -> ProfilePage:
        """Projects after this name, looking at `limit` rows at most, strongly consistent."""
