"""In-memory counters, checkpoints, sessions and time index of the realtime contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from millrace.ledger.adapters.memory import MemoryState
from millrace.ledger.domain.names import Ledger, join_key
from millrace.realtime.domain.time_index import BucketNote, TimeRow
from millrace.realtime.ports import TimeRows, Watermark


@dataclass(slots=True)
class MemoryRealtime:
    state: MemoryState
    counters: dict[str, Counter[str]] = field(default_factory=dict)
    checkpoints: dict[tuple[str, str], Watermark] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def add(self, tenant: str, counts: Mapping[str, int]) -> None:
        with self.lock:
            self.counters.setdefault(tenant, Counter()).update({k: v for k, v in counts.items() if v})

    def read(self, tenant: str) -> Mapping[str, int]:
        with self.lock:
            return dict(self.counters.get(tenant, {}))

    def move(self, session: Ledger, consumer: str, to: Watermark) -> bool:
        with self.lock:
            known = self.checkpoints.get((session.name, consumer))
            if known is not None and _goes_back(known, to):
                return False
            kept = known.sequence if known is not None and to.sequence is None else to.sequence
            self.checkpoints[session.name, consumer] = replace(to, sequence=kept)
            return True

    def get(self, session: Ledger, consumer: str) -> Watermark | None:
        with self.lock:
            return self.checkpoints.get((session.name, consumer))

    def of_tenant(self, tenant: str) -> Iterable[Ledger]:
        prefix = join_key("realtime", tenant) + "#"
        return [ledger for ledger in self.state.ledgers() if ledger.name.startswith(prefix)]


def _goes_back(known: Watermark, to: Watermark) -> bool:
    if known.sequence is not None and to.sequence is not None:
        return to.sequence < known.sequence
    return (to.instant, to.event_id) < (known.instant, known.event_id)


RowKey = tuple[int, int, int]
"""The last instant, the position of the event there, and how many there are."""


@dataclass(slots=True)
class MemoryTimes:
    rows: dict[tuple[str, int], dict[RowKey, TimeRow]] = field(default_factory=dict)
    noted: dict[str, dict[int, BucketNote]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def note(self, session: Ledger) -> BucketNote | None:
        with self.lock:
            noted = self.noted.get(session.name, {})
            return noted[max(noted)] if noted else None

    def notes(self, session: Ledger, bucket: int) -> Iterable[BucketNote]:
        with self.lock:
            noted = self.noted.get(session.name, {})
            return [noted[number] for number in sorted(noted) if number >= bucket]

    def write(self, session: Ledger, rows: Sequence[TimeRow], note: BucketNote) -> None:
        with self.lock:
            for row in rows:
                self.rows.setdefault((session.name, row.width), {})[_row_key(row)] = row
            self.noted.setdefault(session.name, {})[note.bucket] = note

    def read(self, session: Ledger, width: int, since: int, after: TimeRow | None, limit: int) -> TimeRows:
        with self.lock:
            rows = self.rows.get((session.name, width), {})
            start = (since, 0, 0) if after is None else _row_key(after)
            found = [rows[key] for key in sorted(rows) if key > start]
        return TimeRows(found[:limit], more=len(found) > limit)

    def forget(self, session: Ledger, rows: Sequence[TimeRow]) -> None:
        with self.lock:
            for row in rows:
                self.rows.get((session.name, row.width), {}).pop(_row_key(row), None)


def _row_key(row: TimeRow) -> RowKey:
    return row.last.place[0], row.last.position, len(row.hits)
