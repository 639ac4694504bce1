"""What the realtime contract needs beside the ledger: counters, checkpoints, and an index of the order in time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from millrace.ledger.domain.names import Ledger
from millrace.realtime.domain.time_index import BucketNote, TimeRow


class Counters(Protocol):
    def add(self, tenant: str, counts: Mapping[str, int]) -> None:
        """Add to a tenant's counters, whichever process asks."""

    def read(self, tenant: str) -> Mapping[str, int]:
        """Every counter of the tenant that was ever added to, strongly consistent."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """A reader's place in (`ts`, `eventId`) order, and in the log if it is known there. `instant` is `ts` in ns."""

    ts: str
    instant: int
    event_id: str
    sequence: int | None = None


class Checkpoints(Protocol):
    def move(self, session: Ledger, consumer: str, to: Watermark) -> bool:
        """Move a consumer's checkpoint forward or leave it; False if it would have gone back."""

    def get(self, session: Ledger, consumer: str) -> Watermark | None:
        """Strongly consistent."""


class Sessions(Protocol):
    def of_tenant(self, tenant: str) -> Iterable[Ledger]:
        """Every session ledger of a tenant; the cost follows what is found."""


@dataclass(frozen=True, slots=True)
class TimeRows:
    """Rows of one width in order of their last instants. `more`: further rows exist, none of an earlier one."""

    rows: Sequence[TimeRow]
    more: bool = False


class TimeIndex(Protocol):
    def note(self, session: Ledger) -> BucketNote | None:
        """That of the last bucket that has one, strongly consistent."""

    def notes(self, session: Ledger, bucket: int) -> Iterable[BucketNote]:
        """Those of this bucket and of all after it, in order, strongly consistent."""

    def write(self, session: Ledger, rows: Sequence[TimeRow], note: BucketNote) -> None:
        """Store the rows and, when every one is durable, the note. The same once more changes nothing."""

    def read(self, session: Ledger, width: int, since: int, after: TimeRow | None, limit: int) -> TimeRows:
        """Up to `limit` rows of a width whose last instant is `since` or later, strongly consistent; those after this
        row, if it is given."""

    def forget(self, session: Ledger, rows: Sequence[TimeRow]) -> None:
        """Remove rows. Idempotent."""
