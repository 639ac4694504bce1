"""Poll: a stream's next events after a cursor (T6, T9, T10). It never skips, gets stuck or resets by itself.

An event whose body was pruned ends a batch: what lies before it is given, and the next poll is told that history is
gone, whether or not the floor has been raised yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from millrace.ledger.application.heads import Heads
from millrace.ledger.application.read_log import ReadLog, retained_from
from millrace.ledger.domain.access import CONSUMER, Identity
from millrace.ledger.domain.names import Ledger, split_key, stream_ledger
from millrace.ledger.domain.page import Event
from millrace.ledger.ports import KeyRing, Log, Marks, State, Together
from millrace.streams.application.runtime_access import require_negotiated, require_runtime
from millrace.streams.domain.cursor import CursorPlace, read_cursor, stream_scope, write_cursor
from millrace.streams.domain.envelope import check_id, invalid, without_nulls
from millrace.streams.domain.errors import BatchTooLarge, CursorExpired, MaxPollEventsExceeded, StreamDegraded
from millrace.streams.domain.gap import gap_event
from millrace.streams.domain.negotiate import NAMESPACE, StreamLimits
from millrace.streams.ports import Degraded, Runtimes

READ_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class PolledBatch:
    events: list[bytes]
    """Each the UTF-8 text of a JSON object."""
    next_cursor: str
    dropped_count: int


@dataclass(slots=True)
class _Filling:
    """A batch while it is filled. Its size is that of the compact JSON array of its events."""

    limits: StreamLimits
    max_events: int
    at: int
    events: list[bytes] = field(default_factory=list)
    size: int = 1
    pruned: bool = False
    """The next position is there, but its body is gone."""

    @property
    def full(self) -> bool:
        return len(self.events) >= self.max_events

    def add(self, text: bytes, position: int) -> bool:
        """False when it does not fit any more. One that would not fit alone is an error."""
        if self.size + len(text) + 1 > self.limits.max_batch_bytes:
            if self.events:
                return False
            raise BatchTooLarge(
                "The next event alone is larger than a batch may be; negotiate a larger max_batch_bytes.",
                seq_no=position,
                event_bytes=self.size + len(text) + 1,  # as a batch of its own: with this limit it fits
                max_batch_bytes=self.limits.max_batch_bytes,
            )
        self.events.append(text)
        self.size += len(text) + 1
        self.at = position
        return True


@dataclass(frozen=True, slots=True)
class Poll:
    log: Log
    state: State
    runtimes: Runtimes
    degraded: Degraded
    keys: KeyRing
    heads: Heads
    together: Together
    clock: Callable[[], int]
    new_subscription: Callable[[], str]

    def __call__(
        self, identity: Identity, runtime_id: str, stream_id: str, cursor: str | None, max_events: int | None
    ) -> PolledBatch:
        identity.require(CONSUMER)
        require_runtime(identity, runtime_id)
        check_id("stream_id", stream_id)
        ledger = stream_ledger(identity.tenant, runtime_id, stream_id)
        scope = stream_scope(NAMESPACE, identity.tenant, runtime_id, stream_id)
        place = None if cursor is None else read_cursor(self.keys.find, scope, cursor)
        calls: list[Callable[[], Any]] = [
            partial(self.runtimes.session, identity.tenant, runtime_id, identity.client_id),
            partial(self.state.marks, ledger),
        ]
        if place is not None:
            calls.append(partial(self.degraded.is_marked, ledger, place.subscription))
        negotiated, marks, *marked = self.together(calls)
        limits = require_negotiated(negotiated).limits
        wanted = _wanted(max_events, limits)
        if place is None:
            place = CursorPlace(self.new_subscription(), 0)
            filling, dropped = self._first(ledger, marks, limits, wanted)
        else:
            self._check_place(ledger, place, marks.floor, marked=marked[0])
            filling, dropped = self._next(ledger, place, marks, limits, wanted), 0
        following = write_cursor(self.keys.current(), scope, CursorPlace(place.subscription, filling.at))
        return PolledBatch(filling.events, following, dropped)

    def resume(self, tenant: str, runtime_id: str, stream_id: str, cursor: str) -> int:
        """The position a cursor stands at; raises as a poll with it would."""
        ledger = stream_ledger(tenant, runtime_id, stream_id)
        place = read_cursor(self.keys.find, stream_scope(NAMESPACE, tenant, runtime_id, stream_id), cursor)
        marked = self.degraded.is_marked(ledger, place.subscription)
        self._check_place(ledger, place, self.state.marks(ledger).floor, marked=marked)
        return place.position

    def _first(self, ledger: Ledger, marks: Marks, limits: StreamLimits, wanted: int) -> tuple[_Filling, int]:
        """A poll without cursor begins at the floor, and says first what is gone below it."""
        floor = marks.floor
        filling = self._from_floor(ledger, floor, marks, limits, wanted)
        if filling.at == floor - 1 and (filling.pruned or filling.full):  # or the gap has left no room to find out
            floor = self._retained_from(ledger, floor)
            filling = self._from_floor(ledger, floor, marks, limits, wanted)
        return filling, floor - 1

    def _from_floor(self, ledger: Ledger, floor: int, marks: Marks, limits: StreamLimits, wanted: int) -> _Filling:
        filling = _Filling(limits, wanted, floor - 1)
        if floor > 1:
            runtime_id, stream_id = split_key(ledger.name)[2:]
            gap = gap_event(runtime_id, stream_id, 1, floor, self.clock())
            filling.add(json.dumps(gap, ensure_ascii=False, separators=(",", ":")).encode(), floor - 1)
        self._fill(ledger, filling, marks)
        return filling

    def _next(self, ledger: Ledger, place: CursorPlace, marks: Marks, limits: StreamLimits, wanted: int) -> _Filling:
        filling = _Filling(limits, wanted, place.position)
        self._fill(ledger, filling, marks)
        if filling.pruned and not filling.events:
            raise self._expire(ledger, place, self._retained_from(ledger, place.position + 1))
        return filling

    def _retained_from(self, ledger: Ledger, floor: int) -> int:
        """It reads on from the floor and does not look for the head: one that is looked for from below stops at a page
        that cannot be read yet, which may lie under the floor."""
        return retained_from(self.log, self.together, ledger, floor)

    def _check_place(self, ledger: Ledger, place: CursorPlace, floor: int, *, marked: bool) -> None:
        if marked:
            raise _degraded()
        if place.position < floor - 1:
            raise self._expire(ledger, place, floor)

    def _expire(self, ledger: Ledger, place: CursorPlace, floor: int) -> CursorExpired | StreamDegraded:
        """Of polls that find it at once, one is told that the cursor has expired, the others that it is degraded."""
        if not self.degraded.mark(ledger, place.subscription):
            return _degraded()
        text = "Events after this cursor were pruned; poll without a cursor to start over at what is retained."
        return CursorExpired(text, field="cursor", cursor_seq_no=place.position, floor_seq_no=floor)

    def _fill(self, ledger: Ledger, filling: _Filling, marks: Marks) -> None:
        """Up to the head, the batch's limits, a pruned event, or a page that cannot be read yet.

        Nobody looks for the head first: a read that gives less than it was asked for has met it.
        """
        read, known = ReadLog(self.log, self.together), self.heads.recall(ledger)
        at_page_end = filling.at == marks.hint or (known is not None and filling.at == known[0])
        while not filling.full:
            want = min(filling.max_events - len(filling.events), READ_AT_ONCE)
            through = filling.at + want
            pages = read(ledger, filling.at, through, want, at_page_end=at_page_end)
            for page in pages:
                for event in page.events():
                    if event.position > filling.at and not _take(filling, event):
                        return
            if filling.at < through:
                if pages:
                    self.heads.remember(ledger, filling.at)
                return
            at_page_end = True


def _take(filling: _Filling, event: Event) -> bool:
    if filling.full:
        return False
    if event.record.body is None:
        filling.pruned = True
        return False
    return filling.add(with_seq_no(event.record.body, event.position), event.position)


def with_seq_no(body: bytes, position: int) -> bytes:
    """A stored event as its readers see it. The body is a JSON object, never an empty one."""
    return without_nulls(body)[:-1] + b',"seq_no":%d}' % position


def _wanted(max_events: int | None, limits: StreamLimits) -> int:
    if max_events is None:
        return limits.max_poll_events
    if max_events < 1:
        raise invalid("max", "max must be an integer from 1.", max_events)
    if max_events > limits.max_poll_events:
        raise MaxPollEventsExceeded(
            f"max is {max_events}; the runtime's limit is {limits.max_poll_events}.",
            field="max",
            max_poll_events=limits.max_poll_events,
        )
    return max_events


def _degraded() -> StreamDegraded:
    return StreamDegraded("This subscription lost history; poll without a cursor to start over.", field="cursor")
