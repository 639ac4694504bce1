"""Order in time: the first events of a session after a place in (`ts`, `eventId`) order, and how many were passed over.

The time index makes it cheap; the log makes it right: only rows of noted buckets are used, and what lies above them is
read from the log itself, all of it, since a late event may belong anywhere. Memory holds one page, however long the
session is, and however many of its events are of the same instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from millrace.ledger.application.read_log import retained_from
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger, bucket_end, bucket_last, bucket_of
from millrace.ledger.domain.page import Page
from millrace.realtime.application.read_session import BATCH, ReadSession, with_sequence
from millrace.realtime.domain.time_index import (
    ROW_HITS,
    BucketNote,
    FirstHits,
    LateEvents,
    TimeHit,
    TimeRow,
    passed_over,
    reach,
)
from millrace.realtime.domain.time_order import PAGE_BYTES, FirstAfter, PassedBy, Place, place_of, size_of
from millrace.realtime.ports import TimeIndex

READ_WHOLE = 1_000
"""Of so few events, a session is read from the log; the index would not save a call."""
NEAR = 32
"""Wanted events that are so near to each other in the log are read at once, with what lies between them."""
GET_PAGES = 100
GET_TRIES = 5
_EARLIEST = (-(10**20), "")

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FoundInTime:
    """`own`: the sequence of the event at the place, if it is retained. `late`: how many came after it and are before
    the place. `gone`: the last position known to be pruned, or 0."""

    events: list[Event]
    has_more: bool
    head: int
    gone: int
    own: int | None = None
    late: int = 0


@dataclass(slots=True)
class Tail:
    """What lies above the index, as far as this page needs it."""

    first: FirstAfter
    passed: PassedBy
    below: int = 0
    """Events before the place."""
    gone: int = 0

    def add(self, event: Event, at: Place | None) -> None:
        self.first.add(event)
        if at is not None:
            self.passed.add(event)
            self.below += place_of(event) < at


@dataclass(slots=True)
class RowReading:
    """How far the rows of one width were read."""

    width: int
    last: TimeRow | None = None
    more: bool = True

    def may_hold(self, hits: FirstHits) -> bool:
        """Whether a row that was not read may have one of the first hits."""
        if not self.more or self.last is None or not hits.full:
            return self.more
        return hits.kept[-1].place[0] >= self.last.last.place[0] - reach(self.width)


@dataclass(slots=True)
class Filled:
    """A page as it fills."""

    limit: int
    events: list[Event] = field(default_factory=list)
    size: int = 0
    full: bool = False

    @property
    def left(self) -> int:
        return self.limit - len(self.events)

    def add(self, event: Event) -> None:
        size = size_of(event)
        if self.events and self.size + size > PAGE_BYTES:
            self.full = True
        if not self.full:
            self.events.append(event)
            self.size += size

    def room_for(self, candidates: Sequence[tuple[Place, TimeHit | Event]]) -> int:
        """How many of them to fetch. An answer has each body, and more, so those after them would not fit."""
        size, taken = self.size, 0
        for _, one in candidates[: self.left]:
            size += one.size if isinstance(one, TimeHit) else size_of(one)
            if size > PAGE_BYTES and (taken or self.events):
                break
            taken += 1
        return taken


@dataclass(frozen=True, slots=True)
class OrderInTime:
    read: ReadSession
    index: TimeIndex
    read_whole: int = READ_WHOLE

    def __call__(self, session: Ledger, at: Place | None, limit: int) -> FoundInTime:
        floor, head = self.read.bounds(session)
        note = self.index.note(session) if head - floor >= self.read_whole else None
        through = min(bucket_last(note.bucket), head) if note is not None else 0
        if note is None or through < floor:
            tail = self._tail(session, floor, head, floor - 1, at, limit)
            passed = tail.passed
            return FoundInTime(tail.first.events, tail.first.has_more, head, tail.gone, passed.own, passed.count)
        page = Filled(limit)
        tail, hits = self.read.together(
            [
                partial(self._tail, session, floor, head, through, at, limit),
                partial(self._scan, session, note, (floor, through), at, limit),
            ]
        )
        own = hits.own
        has_more, pruned = self._fill(session, note, (floor, through), at, hits, tail, page)
        gone = max(tail.gone, floor - 1)
        if pruned:
            gone = max(gone, retained_from(self.read.log, self.read.together, session, floor, head) - 1)
        if own is None or at is None:
            return FoundInTime(page.events, has_more, head, gone, tail.passed.own, tail.passed.count)
        late = tail.below + self._late(session, (floor, through), at, own)
        return FoundInTime(page.events, has_more, head, gone, own, late)

    def _fill(
        self,
        session: Ledger,
        note: BucketNote,
        within: tuple[int, int],
        at: Place | None,
        hits: FirstHits,
        tail: Tail,
        page: Filled,
    ) -> tuple[bool, bool]:
        """Whether there is more than the page has, and whether something was gone that the index knows."""
        pruned, place, ends = False, at, tail.first.left_out
        while True:
            use = hits.kept[: page.left]
            more = len(hits.kept) > len(use)
            candidates = sorted(
                [(hit.place, hit) for hit in use]
                + [(place_of(event), event) for event in tail.first.events if place is None or place_of(event) > place],
                key=lambda one: one[0],
            )
            known = [one for one in candidates if ends is None or one[0] < ends]
            planned = known[: page.room_for(known)]
            fetched = self._fetch(session, [one for _, one in planned if isinstance(one, TimeHit)])
            for _, one in planned:
                event = fetched.get(one.position) if isinstance(one, TimeHit) else one
                if event is None:
                    pruned = True
                else:
                    page.add(event)
            left = more or ends is not None or len(planned) < len(candidates)
            if page.full or not page.left or not left or (page.events and len(planned) < len(known)):
                return page.full or left, pruned
            if not planned:
                return True, pruned
            place = planned[-1][0]
            hits = self._scan(session, note, within, place, page.left)

    def _tail(self, session: Ledger, floor: int, head: int, after: int, at: Place | None, limit: int) -> Tail:
        tail, reached = Tail(FirstAfter(at, limit, PAGE_BYTES), PassedBy(at or _EARLIEST), gone=floor - 1), after
        while reached < head:
            read = self.read.stretch(session, reached, floor, head, BATCH, whole=True)
            for event in read.events:
                tail.add(event, at)
            reached, tail.gone = read.reached, max(tail.gone, read.gone)
        return tail

    def _scan(
        self, session: Ledger, note: BucketNote, within: tuple[int, int], at: Place | None, limit: int
    ) -> FirstHits:
        """The first indexed events after a place, one more than the limit, from rows of each width."""
        hits, readings = FirstHits(at, limit + 1), [RowReading(width) for width in sorted(note.widths)]
        since, rows = (at or _EARLIEST)[0], limit // ROW_HITS + 3
        while waiting := [reading for reading in readings if reading.may_hold(hits)]:
            answers = self.read.together(
                [partial(self.index.read, session, reading.width, since, reading.last, rows) for reading in waiting]
            )
            for reading, answer in zip(waiting, answers, strict=True):
                for row in answer.rows:
                    for hit in row.hits:
                        if within[0] <= hit.position <= within[1]:
                            hits.add(hit)
                    reading.last = row
                reading.more = answer.more
        return hits

    def _late(self, session: Ledger, within: tuple[int, int], at: Place, own: int) -> int:
        """How many indexed events came after the place's own and lie before it."""
        count, (floor, through) = 0, within
        for note in self.index.notes(session, bucket_of(own)):
            start, end, late = bucket_last(note.bucket - 1) + 1, bucket_last(note.bucket), note.late
            if start > through:
                break
            if not late.count or at <= late.first:
                continue
            whole = start >= floor and end <= through and own < start
            if whole and late.last < at:
                count += late.count
            else:
                named = [one for one in self._named(session, start, late) if floor <= one[1] <= through]
                count += passed_over(named, at, own)
        return count

    def _named(self, session: Ledger, start: int, late: LateEvents) -> Sequence[tuple[Place, int]]:
        """The late events of a bucket, or all that are retained of it."""
        if late.named:
            return late.hits
        floor, end = self.read.state.marks(session).floor, bucket_end(start)
        read = self.read.stretch(session, start - 1, floor, end, BATCH, whole=True)
        events = list(read.events)
        while read.reached < end:
            read = self.read.stretch(session, read.reached, floor, end, BATCH, whole=True)
            events += read.events
        return [(place_of(event), event["sequence"]) for event in events]

    def _fetch(self, session: Ledger, hits: Sequence[TimeHit]) -> dict[int, Event]:
        """By position; those that were pruned meanwhile are not there."""
        if not hits:
            return {}
        by_page: dict[int, list[int]] = {}
        for hit in sorted(hits, key=lambda hit: hit.position):
            by_page.setdefault(hit.page, []).append(hit.position)
        runs = _runs(by_page)
        alone = {run[0]: by_page[run[0]] for run in runs if len(run) == 1}
        calls = [partial(self._range, session, {page: by_page[page] for page in run}) for run in runs if len(run) > 1]
        if alone:
            calls.append(partial(self._pages, session, alone))
        return {position: event for answer in self.read.together(calls) for position, event in answer.items()}

    def _range(self, session: Ledger, wanted: Mapping[int, Sequence[int]]) -> dict[int, Event]:
        """From pages that lie side by side."""
        at, last, found, seen = min(wanted) - 1, max(wanted), dict[int, Event](), 0
        while True:
            run = self.read.log.read(session, at, through=last)
            for page in run.pages:
                if page.first in wanted:
                    seen += 1
                    found |= _bodies(page, wanted[page.first])
                at = page.first
            if not run.more:
                break
        if seen < len(wanted):
            raise Unavailable("Pages of the session cannot be read now.")
        return found

    def _pages(self, session: Ledger, wanted: Mapping[int, Sequence[int]]) -> dict[int, Event]:
        found, firsts = dict[int, Event](), list(wanted)
        for start in range(0, len(firsts), GET_PAGES):
            missing = firsts[start : start + GET_PAGES]
            for _ in range(GET_TRIES):
                pages = self.read.log.get(session, missing)
                for first, page in pages.items():
                    found |= _bodies(page, wanted[first])
                missing = [first for first in missing if first not in pages]
                if not missing:
                    break
            else:
                raise Unavailable("Pages of the session cannot be read now.")
        return found


def _runs(by_page: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """First positions of pages, those side by side that one read brings: in one bucket, and near to each other."""
    runs, ends = list[list[int]](), 0
    for page in sorted(by_page):
        if runs and page - ends <= NEAR and bucket_of(page) == bucket_of(ends):
            runs[-1].append(page)
        else:
            runs.append([page])
        ends = by_page[page][-1]
    return runs


def _bodies(page: Page, positions: Sequence[int]) -> dict[int, Event]:
    wanted = set(positions)
    return {
        event.position: with_sequence(event)
        for event in page.events()
        if event.position in wanted and event.record.body is not None
    }
