"""Replay: a session's events from a sequence, a watermark or a consumer's checkpoint on (R6).

By sequence is the primary way: nothing that arrives is ever before a cursor. A watermark is a place in (`ts`,
`eventId`) order; an event that arrives late with an older `ts` is not after it. Such events are counted in the answer,
with the sequence from which to read them, so that a watermark reader is told and never loses them unknowingly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.instants import instant
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event
from millrace.ledger.ports import Log, State, Together
from millrace.realtime.domain.session_access import readable_session
from millrace.realtime.domain.time_order import FirstAfter, PassedBy, size_of
from millrace.realtime.ports import Checkpoints, Watermark

PAGE_BYTES = 4 * 1024 * 1024
MAX_READ_BYTES = 32 * 1024 * 1024
"""Of bodies that are held in memory at once, about."""
BATCH = 1_000


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """In this precedence; nothing given is time order from the start."""

    after_sequence: int | None = None
    consumer: str | None = None
    watermark: Watermark | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class ReplayPage:
    events: list[Mapping[str, Any]]
    has_more: bool
    watermark: Watermark | None
    pruned_through: int | None = None
    late: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The retained events after a position, up to `reached`. `gone`: the last position there that was pruned, or 0."""

    events: list[Mapping[str, Any]]
    reached: int
    floor: int
    head: int
    gone: int


@dataclass(frozen=True, slots=True)
class Replay:
    log: Log
    state: State
    checkpoints: Checkpoints
    heads: Heads
    together: Together

    def __call__(self, identity: Identity, session_id: str, asked: ReplayRequest) -> ReplayPage:
        return self.page(readable_session(identity, session_id), asked)

    def page(self, session: Ledger, asked: ReplayRequest) -> ReplayPage:
        """For callers within the hub, who have the right already."""
        watermark = asked.watermark
        if asked.after_sequence is not None:
            return self._by_sequence(session, asked.after_sequence, asked.limit, None)
        if asked.consumer is not None:
            watermark = self.checkpoints.get(session, asked.consumer)
            if watermark is not None and watermark.sequence is not None:
                return self._by_sequence(session, watermark.sequence, asked.limit, watermark)
        return self._by_time(session, watermark, asked.limit)

    def after(self, session: Ledger, sequence: int) -> Stretch:
        """What is retained after a sequence, as much as one request may hold."""
        floor, head = self.bounds(session)
        read = self._read(session, sequence, floor, head, BATCH, whole=True)
        return replace(read, gone=max(read.gone, floor - 1 if sequence < floor - 1 else 0))

    def _by_sequence(self, session: Ledger, after: int, limit: int, at: Watermark | None) -> ReplayPage:
        floor, head = self.bounds(session)
        read = self._read(session, after, floor, head, limit)
        kept = _fit(read.events, limit)
        reached = read.reached if len(kept) == len(read.events) else kept[-1]["sequence"]
        last = _watermark(kept[-1]) if kept else at
        # Pages are emptied before the floor is raised, and a pruner may die in between.
        pruned = max(floor - 1 if after < floor - 1 else 0, read.gone if read.gone <= reached else 0)
        return ReplayPage(kept, reached < head, last, pruned or None)

    def _by_time(self, session: Ledger, after: Watermark | None, limit: int) -> ReplayPage:
        floor, head = self.bounds(session)
        place = None if after is None else (after.instant, after.event_id)
        first, at, pruned = FirstAfter(place, limit, PAGE_BYTES), floor - 1, floor - 1
        passed = None if place is None else PassedBy(place)
        while at < head:
            read = self._read(session, at, floor, head, BATCH, whole=True)
            for event in read.events:
                first.add(event)
                if passed is not None:
                    passed.add(event)
            at, pruned = read.reached, max(pruned, read.gone)
        kept, late = first.events, {} if passed is None else passed.as_json()
        last = _watermark(kept[-1]) if kept else after
        if last is not None:
            # A place in time is a place in the log only when nothing before it is left to read.
            last = replace(last, sequence=None if first.has_more or late else head)
        return ReplayPage(kept, first.has_more, last, pruned or None, late)

    def bounds(self, session: Ledger) -> tuple[int, int]:
        """The floor and the head."""
        marks = self.state.marks(session)
        return marks.floor, newest(self.log, self.heads, session, marks.hint)

    def _read(self, session: Ledger, after: int, floor: int, head: int, want: int, *, whole: bool = False) -> Stretch:
        at, gone, events, size = max(after, floor - 1), 0, list[Mapping[str, Any]](), 0
        for pages in ReadLog(self.log, self.together).batches(session, at, head, min(want, BATCH)):
            for page in pages:
                for event in page.events():
                    if not at < event.position <= head:
                        continue
                    if event.record.body is None:
                        gone = event.position
                    else:
                        size += len(event.record.body)
                        events.append(with_sequence(event))
                at = max(at, min(page.end, head))
            if size > MAX_READ_BYTES or not (whole or len(events) < want):
                break
        return Stretch(events, at, floor, head, gone)


def with_sequence(event: Event) -> Mapping[str, Any]:
    content: dict[str, Any] = json.loads(event.record.body or b"{}")
    content["sequence"] = event.position
    return content


def _watermark(event: Mapping[str, Any]) -> Watermark:
    return Watermark(event["ts"], instant(event["ts"]), event["eventId"], event["sequence"])


def _fit(events: list[Mapping[str, Any]], limit: int) -> list[Mapping[str, Any]]:
    kept, size = list[Mapping[str, Any]](), 0
    for event in events[:limit]:
        size += size_of(event)
        if kept and size > PAGE_BYTES:
            break
        kept.append(event)
    return kept
