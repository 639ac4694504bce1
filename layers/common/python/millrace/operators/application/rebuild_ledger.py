"""Rebuild a ledger: its floor, the cursors that follow from the log, its index and rows; last, it is registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from millrace.ledger.application.heads import find_head
from millrace.ledger.application.raise_cursor import raise_cursor
from millrace.ledger.application.read_log import retained_from
from millrace.ledger.domain.consumers import ARCHIVE_CONSUMER, FAN_OUT_CONSUMER
from millrace.ledger.domain.names import INDEXED, TIMED, Ledger, bucket_last, bucket_of, ledger_named
from millrace.ledger.domain.page import Event, contiguous
from millrace.ledger.ports import Log, Marks, State, Together
from millrace.operators.application.bookmark import Bookmark
from millrace.operators.application.rebuild_claims import RebuildClaims
from millrace.operators.domain.rebuilt import (
    CONTRACT,
    CURSORS_AHEAD,
    PRUNED_SESSIONS,
    PRUNED_STREAMS,
    UNKNOWN_MARKERS,
    Rebuilt,
)
from millrace.realtime.application.rebuild_times import RebuildTimes
from millrace.streams.application.restore_rows import RestoreRows
from millrace.sync.application.rebuild_index import RebuildIndex

QUIET_MS = 24 * 3_600_000
"""No connection lives that long, so nobody who listens now still needs an older event from the fan-out."""
PRUNED = {"realtime": PRUNED_SESSIONS, "streams": PRUNED_STREAMS}
"""Of these contracts more than the events themselves is lost when pruned ones cannot be folded again."""


@dataclass(frozen=True, slots=True)
class RebuildLedger:
    log: Log
    state: State
    claims: RebuildClaims | None
    index: RebuildIndex
    times: RebuildTimes
    rows: RestoreRows
    together: Together
    clock: Callable[[], int]

    def __call__(self, name: str, bookmark: Bookmark) -> None:
        ledger, report = ledger_named(name), bookmark.report
        marks = self.state.marks(ledger)
        head = find_head(self.log, ledger, 0)
        report.count("ledgers")
        report.count(CONTRACT + ledger.contract)
        forgotten = FAN_OUT_CONSUMER not in marks.cursors  # every ledger has that cursor, moments after its first page
        report.count("forgotten", int(forgotten))
        for consumer, at in marks.cursors.items():
            if at > head:
                report.find(CURSORS_AHEAD, f"{name} {consumer} {at}, newest {head}")
        if self.claims is not None:
            self.claims.complete(ledger, head, report)
        floor = self._raise_marks(ledger, marks, head, report)
        if ledger.contract in INDEXED:
            start = bookmark.ledgers.get(name, 0)
            report.count("index rows", self.index(ledger, start, partial(bookmark.indexed, name)))
        elif ledger.contract in TIMED:
            report.count("index rows", self.times(ledger))
        elif ledger.contract == "streams":
            self._restore_rows(ledger, report)
        if floor > 1 and forgotten and ledger.contract in PRUNED:
            report.find(PRUNED[ledger.contract], name)
        self.state.register(ledger)

    def _raise_marks(self, ledger: Ledger, marks: Marks, head: int, report: Rebuilt) -> int:
        """The floor. Nothing is pruned above a consumer's cursor, so what is pruned has been archived and sent."""
        floor = retained_from(self.log, self.together, ledger, marks.floor, head)
        if floor > marks.floor:
            self.state.raise_floor(ledger, floor)
            report.count("floors raised")
        passed = self._page_end_at_most(ledger, floor - 1)
        wanted = {ARCHIVE_CONSUMER: passed}
        if FAN_OUT_CONSUMER not in marks.cursors:
            wanted[FAN_OUT_CONSUMER] = max(passed, quiet_end(self.log, ledger, head, self.clock() - QUIET_MS))
        for consumer, to in wanted.items():
            if to > marks.cursors.get(consumer, 0) and raise_cursor(self.state, ledger, consumer, to):
                report.count("cursors raised")
        return floor

    def _page_end_at_most(self, ledger: Ledger, position: int) -> int:
        page = self.log.holding(ledger, position) if position else None
        if page is None:
            return 0
        return page.end if page.end <= position else page.first - 1

    def _restore_rows(self, ledger: Ledger, report: Rebuilt) -> None:
        restored = self.rows(ledger, self._batches(ledger))
        report.count("markers restored", restored.markers)
        report.count("messages restored", restored.messages)
        for marker in restored.unknown_markers:
            report.find(UNKNOWN_MARKERS, f"{ledger.name} {marker}")

    def _batches(self, ledger: Ledger) -> Iterator[list[Event]]:
        at = 0
        while pages := list(contiguous(self.log.read(ledger, at).pages, at)):
            yield [event for page in pages for event in page.events()]
            at = pages[-1].end


def quiet_end(log: Log, ledger: Ledger, head: int, before_ms: int) -> int:
    """A page end up to which every page is older: the head, or the end of a bucket. Times rise with positions."""
    if _is_older(log, ledger, head, before_ms):
        return head
    low, high = -1, bucket_of(head)
    while high - low > 1:
        middle = (low + high) // 2
        if _is_older(log, ledger, bucket_last(middle), before_ms):
            low = middle
        else:
            high = middle
    return bucket_last(low)


def _is_older(log: Log, ledger: Ledger, position: int, before_ms: int) -> bool:
    page = log.holding(ledger, position)
    return page is not None and page.time_ms < before_ms
