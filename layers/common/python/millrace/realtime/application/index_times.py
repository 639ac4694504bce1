"""Index times: note where a session's events are in time order, one full bucket of the log after the other.

What lies above the last full bucket is read from the log itself, so a session shorter than that has no index.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from millrace.ledger.domain.instants import instant
from millrace.ledger.domain.names import Ledger, bucket_last
from millrace.ledger.domain.page import Page, contiguous
from millrace.ledger.ports import Log, State
from millrace.realtime.domain.time_index import TimeHit, indexed
from millrace.realtime.ports import TimeIndex

FORGET_AT_ONCE = 25


@dataclass(frozen=True, slots=True)
class IndexTimes:
    log: Log
    state: State
    index: TimeIndex
    may_go_on: Callable[[], bool]
    """False when the caller's time is nearly up; what is left is found by the next ring."""

    def __call__(self, session: Ledger) -> bool:
        """Index every full bucket. True when that is done, False when time ran out."""
        note = self.index.note(session)
        bucket = 0 if note is None else note.bucket + 1
        began = bucket
        while (hits := self.hits(session, bucket)) is not None:
            rows, note = indexed(bucket, hits, note)
            self.index.write(session, rows, note)
            bucket += 1
            if not self.may_go_on():
                return False
        return bucket == began or note is None or self._forget_pruned(session, note.widths)

    def hits(self, session: Ledger, bucket: int) -> list[TimeHit] | None:
        """What is retained of a bucket, or None while it is not full."""
        at, end, hits = bucket_last(bucket - 1), bucket_last(bucket), list[TimeHit]()
        while at < end:
            pages = list(contiguous(self.log.read(session, at).pages, at))
            if not pages:
                return None
            for page in pages:
                hits.extend(_hits_of(page))
            at = pages[-1].end
        return hits

    def _forget_pruned(self, session: Ledger, widths: frozenset[int]) -> bool:
        """Whether the earliest rows of each width have something that is retained."""
        floor = self.state.marks(session).floor
        return floor == 1 or all(self._forget(session, width, floor) for width in sorted(widths))

    def _forget(self, session: Ledger, width: int, floor: int) -> bool:
        while True:
            read = self.index.read(session, width, _EARLIEST, None, FORGET_AT_ONCE)
            pruned = [row for row in read.rows if row.top < floor]
            self.index.forget(session, pruned)
            if len(pruned) < len(read.rows) or not read.more:
                return True
            if not self.may_go_on():
                return False


_EARLIEST = instant("0001-01-01T00:00:00Z")


def _hits_of(page: Page) -> list[TimeHit]:
    hits = []
    for event in page.events():
        body = event.record.body
        if body is not None:
            content = json.loads(body)
            place = (instant(content["ts"]), content["eventId"])
            hits.append(TimeHit(place, event.position, page.first, len(body)))
    return hits
