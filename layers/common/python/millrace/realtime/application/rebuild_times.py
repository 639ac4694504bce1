"""Rebuild the time index of a session: write its rows and notes again from the log, whatever is there."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.ledger.domain.names import Ledger
from millrace.realtime.application.index_times import IndexTimes
from millrace.realtime.domain.time_index import BucketNote, indexed


@dataclass(frozen=True, slots=True)
class RebuildTimes:
    times: IndexTimes

    def __call__(self, session: Ledger) -> int:
        """How many rows were written. What stands stays until it is written again, so nobody misses an event."""
        note: BucketNote | None = None
        bucket, written = 0, 0
        while (hits := self.times.hits(session, bucket)) is not None:
            rows, note = indexed(bucket, hits, note)
            self.times.index.write(session, rows, note)
            bucket, written = bucket + 1, written + len(rows)
        return written
