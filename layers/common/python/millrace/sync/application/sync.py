"""Sync: every retained event of some partitions after a position, page by page, up to a fixed high-watermark.

The partition index makes it cheap; the log makes it right: only rows up to the indexer's cursor are used, that
cursor is read first, and what lies above it is read from the log itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.canonical import escaped_bytes
from millrace.ledger.domain.consumers import INDEX_CONSUMER
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event, Page
from millrace.ledger.ports import Log, Marks, State, Together
from millrace.sync.domain.read import SyncPage
from millrace.sync.ports import Hit, IndexRow, IndexRows, PartitionIndex

DIRECT_SPAN = 1_000
"""A range of so few positions is read from the log and filtered; the index would not save a call."""
INDEX_ROWS = 200
MAX_PAGES = 500
EVENT_OVERHEAD = 260
GET_TRIES = 5


def approximate_bytes(event: Event) -> int:
    """Never less than the event takes in an answer over HTTP."""
    record = event.record
    names = sum(2 * len(name.encode()) + 6 for name in record.partitions)
    return EVENT_OVERHEAD + escaped_bytes(record.body or b"") + 2 * len(record.id.encode()) + names


@dataclass(frozen=True, slots=True)
class Sync:
    log: Log
    state: State
    index: PartitionIndex
    heads: Heads
    together: Together
    direct_span: int = DIRECT_SPAN

    def __call__(
        self,
        ledger: Ledger,
        partitions: Collection[str] | None,
        since: int,
        limit: int,
        max_bytes: int,
        sync_to: int | None = None,
        weigh: Callable[[Event], int] = approximate_bytes,
    ) -> SyncPage:
        """One page. `partitions` None means all of the ledger; `sync_to` is the first page's, given back.

        `weigh` says what an event takes of `max_bytes`.
        """
        marks = self.state.marks(ledger)
        head = self._head(ledger, marks, enough=None if sync_to is None else max(since, sync_to))
        if since > head:
            return SyncPage((), since, head, has_more=False)
        if sync_to is None:
            sync_to = head
        elif sync_to > head:
            raise BadRequest(
                "sync_to_committed_id is above the newest committed id; take it from this cycle's first page.",
                field="sync_to_committed_id",
                value_class="integer",
                newest_committed_id=head,
            )
        if since >= sync_to:
            return SyncPage((), since, sync_to, has_more=False)
        start = max(since, _passed(marks, partitions, sync_to))
        lost = self._last_lost(ledger, partitions, since, start)
        events, reached = self._collect(ledger, partitions, marks, start, sync_to, limit)
        kept, cut = _fit(events, limit, max_bytes, weigh)
        next_since = reached if cut is None else cut
        gone = [event.position for event in events if event.record.body is None and event.position <= next_since]
        pruned = max([*lost, *gone], default=None)
        return SyncPage(kept, next_since, sync_to, has_more=next_since < sync_to, pruned_through=pruned)

    def _last_lost(self, ledger: Ledger, partitions: Collection[str] | None, since: int, start: int) -> Collection[int]:
        """The last of the positions above `since` up to `start`, all of them pruned, that concerns the partitions, or
        nothing. Two rows of each partition's index tell it, whatever was pruned: the one that reaches `start` or the
        next one after it, and the last one that ends before. A row that does not hold that position has none above it.
        """
        if since >= start:
            return ()
        if partitions is None:
            return (start,)
        reaching = [partial(self.index.read, ledger, name, start - 1, 1) for name in partitions]
        ending = [partial(self.index.before, ledger, name, start) for name in partitions]
        answers = self.together([*reaching, *ending])
        rows = [row for answer in answers[: len(reaching)] for row in answer.rows[:1]]
        rows += [row for row in answers[len(reaching) :] if row is not None]
        lost = [hit.position for row in rows for hit in row.hits if since < hit.position <= start]
        return sorted(lost)[-1:]

    def _head(self, ledger: Ledger, marks: Marks, enough: int | None) -> int:
        """The head, or any page end at or above `enough`."""
        known = self.heads.recall(ledger)
        best = max(marks.hint, known[0] if known else 0)
        if enough is not None and best >= enough:
            return best
        return newest(self.log, self.heads, ledger, best)

    def _collect(
        self, ledger: Ledger, partitions: Collection[str] | None, marks: Marks, start: int, sync_to: int, limit: int
    ) -> tuple[list[Event], int]:
        """Matching events after `start` in order, and the position up to which none is missing."""
        read = ReadLog(self.log, self.together)
        if partitions is None or sync_to - start <= self.direct_span:
            want = limit if partitions is None else max(limit, self.direct_span)
            pages = read(ledger, start, sync_to, want)
            return _matching(pages, partitions, start, sync_to), _reach(pages, start, sync_to)
        indexed = min(marks.cursors.get(INDEX_CONSUMER, 0), sync_to)
        queries = [partial(self.index.read, ledger, name, start, INDEX_ROWS) for name in partitions]
        tail_start = max(start, indexed)
        tail_read = partial(read, ledger, tail_start, sync_to, max(limit, self.direct_span), trips=1)
        answers = self.together([tail_read, *queries])
        tail: list[Page] = answers[0]
        hits, horizon = _merge(answers[1:], start, indexed)
        events, reached = self._fetch(ledger, hits, horizon, limit)
        if reached < tail_start:
            return events, reached
        return events + _matching(tail, partitions, tail_start, sync_to), _reach(tail, tail_start, sync_to)

    def _fetch(self, ledger: Ledger, hits: Sequence[Hit], horizon: int, limit: int) -> tuple[list[Event], int]:
        wanted = hits[: limit + 1]
        firsts = sorted({hit.page for hit in wanted})[:MAX_PAGES]
        pages = dict(self.log.get(ledger, firsts)) if firsts else {}
        for _ in range(GET_TRIES):
            if not firsts or firsts[0] in pages:
                break
            pages |= self.log.get(ledger, firsts[:1])  # whatever else was left out, a page of the answer gets on
        events: list[Event] = []
        for hit in wanted:
            if hit.page not in pages:
                return events, hit.position - 1
            events.append(_event(pages[hit.page], hit.position))
        return events, (horizon if len(wanted) == len(hits) else hits[len(wanted)].position - 1)


def _passed(marks: Marks, partitions: Collection[str] | None, sync_to: int) -> int:
    """Up to where nothing is retained, so that nothing need be read. What partitions lost there is asked of the index,
    so only as far as it reaches; beyond, the emptied pages tell."""
    passed = min(marks.floor - 1, sync_to)
    return passed if partitions is None else min(passed, marks.cursors.get(INDEX_CONSUMER, 0))


def _merge(answers: Iterable[IndexRows], start: int, indexed: int) -> tuple[list[Hit], int]:
    """All hits up to the horizon: the smallest end of any truncated query, and never above the index's cursor."""
    horizon = indexed
    rows: list[IndexRow] = []
    for answer in answers:
        rows.extend(answer.rows)
        if answer.truncated:
            horizon = min(horizon, answer.rows[-1].end)
    hits = {hit.position: hit for row in rows for hit in row.hits if start < hit.position <= horizon}
    return [hits[position] for position in sorted(hits)], max(horizon, start)


def _event(page: Page, position: int) -> Event:
    return page.event(position)


def _matching(pages: Iterable[Page], partitions: Collection[str] | None, start: int, through: int) -> list[Event]:
    wanted = None if partitions is None else frozenset(partitions)
    return [
        event
        for page in pages
        for event in page.events()
        if start < event.position <= through and (wanted is None or not wanted.isdisjoint(event.record.partitions))
    ]


def _reach(pages: Sequence[Page], start: int, through: int) -> int:
    return min(pages[-1].end, through) if pages else start


def _fit(
    events: Sequence[Event], limit: int, max_bytes: int, weigh: Callable[[Event], int]
) -> tuple[list[Event], int | None]:
    """Retained events that fit, at least one; and the position to go on from if something had to be cut."""
    kept: list[Event] = []
    size = 0
    for event in events:
        if event.record.body is None:
            continue
        size += weigh(event)
        if kept and (len(kept) == limit or size > max_bytes):
            return kept, event.position - 1
        kept.append(event)
    return kept, None
