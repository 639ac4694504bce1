"""Stores for a dry run: they read what is there and keep nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Claimed, Marks, State
from millrace.operators.ports import ClaimScan, Key, Scanned, StoredClaim
from millrace.realtime.domain.time_index import BucketNote, TimeRow
from millrace.realtime.ports import TimeIndex, TimeRows
from millrace.streams.ports import RestorableRows, VersionedRow
from millrace.sync.ports import IndexRow, IndexRows, PartitionIndex


@dataclass(frozen=True, slots=True)
class DryState:
    state: State

    def register(self, ledger: Ledger) -> None:
        pass

    def ledgers(self) -> Iterable[Ledger]:
        return self.state.ledgers()

    def marks(self, ledger: Ledger) -> Marks:
        return self.state.marks(ledger)

    def move_cursor(self, ledger: Ledger, consumer: str, expected: int, to: int, noted: int = 0) -> bool:  # noqa: ARG002
        return True

    def raise_floor(self, ledger: Ledger, to: int) -> None:
        pass


@dataclass(frozen=True, slots=True)
class DryIndex:
    index: PartitionIndex

    def write(self, ledger: Ledger, rows: Sequence[IndexRow]) -> None:
        pass

    def read(self, ledger: Ledger, partition: str, after: int, limit: int) -> IndexRows:
        return self.index.read(ledger, partition, after, limit)

    def before(self, ledger: Ledger, partition: str, position: int) -> IndexRow | None:
        return self.index.before(ledger, partition, position)


@dataclass(frozen=True, slots=True)
class DryTimes:
    index: TimeIndex

    def note(self, session: Ledger) -> BucketNote | None:
        return self.index.note(session)

    def notes(self, session: Ledger, bucket: int) -> Iterable[BucketNote]:
        return self.index.notes(session, bucket)

    def write(self, session: Ledger, rows: Sequence[TimeRow], note: BucketNote) -> None:
        pass

    def read(self, session: Ledger, width: int, since: int, after: TimeRow | None, limit: int) -> TimeRows:
        return self.index.read(session, width, since, after, limit)

    def forget(self, session: Ledger, rows: Sequence[TimeRow]) -> None:
        pass


@dataclass(frozen=True, slots=True)
class DryRows:
    rows: RestorableRows

    def get(self, group: str, key: str) -> VersionedRow | None:
        return self.rows.get(group, key)

    def put(self, group: str, key: str, row: VersionedRow) -> VersionedRow | None:
        pass

    def restore(self, group: str, key: str, row: VersionedRow) -> bool:
        stored = self.rows.get(group, key)
        return stored is None or stored.version < row.version

    def settle(self, group: str, key: str, version: int) -> None:
        pass

    def page(self, group: str, after: str, limit: int) -> Sequence[tuple[str, VersionedRow]]:
        return self.rows.page(group, after, limit)


@dataclass(frozen=True, slots=True)
class DryClaims:
    claims: ClaimScan

    def count(self) -> int:
        return self.claims.count()

    def scan(self, segment: int, segments: int, after: Key | None) -> Scanned[StoredClaim]:
        return self.claims.scan(segment, segments, after)

    def lower(self, claim: StoredClaim, seen: int) -> bool:  # noqa: ARG002
        return True

    def missing(self, ledger: Ledger, ids: Sequence[str]) -> Sequence[str]:
        return self.claims.missing(ledger, ids)

    def create(self, ledger: Ledger, ids: Sequence[str], seen: int) -> Claimed:  # noqa: ARG002
        return Claimed(frozenset(ids), frozenset(), frozenset())


class DryPlace:
    """A run that leaves no trace."""

    def load(self) -> dict[str, Any] | None:
        return None

    def save(self, content: Mapping[str, Any]) -> None:
        pass

    def clear(self) -> None:
        pass
