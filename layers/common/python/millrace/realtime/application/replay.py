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
from millrace.ledger.domain.canonical import escaped_bytes
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.instants import instant
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event
from millrace.ledger.ports import Log, State, Together
from millrace.realtime.domain.session_access import readable_session
from millrace.realtime.ports import Checkpoints, Watermark

MAX_SORTED = 20_000
"""Events a session may have to be replayed in time order; above that, by sequence."""
PAGE_BYTES = 4 * 1024 * 1024
MAX_READ_BYTES = 32 * 1024 * 1024
"""Of bodies that one request may hold in memory."""
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

    def after(self, session: Ledger, sequence: int) -> tuple[list[Mapping[str, Any]], int, int]:
        """What is retained after a sequence, as much as one request may hold; how far it was read; and the head."""
        floor, head = self._bounds(session)
        events, reached = self._read(session, max(sequence, floor - 1), head, BATCH, whole=True)
        return events, reached, head

    def _by_sequence(self, session: Ledger, after: int, limit: int, at: Watermark | None) -> ReplayPage:
        floor, head = self._bounds(session)
        start = max(after, floor - 1)
        events, reached = self._read(session, start, head, limit)
        kept = _fit(events, limit)
        if len(kept) < len(events):
            reached = kept[-1]["sequence"]
        last = _watermark(kept[-1]) if kept else at
        pruned = floor - 1 if after < floor - 1 else None
        return ReplayPage(kept, reached < head, last, pruned)

    def _by_time(self, session: Ledger, after: Watermark | None, limit: int) -> ReplayPage:
        floor, head = self._bounds(session)
        if head - floor >= MAX_SORTED:
            raise _too_long()
        events, reached = self._read(session, floor - 1, head, MAX_SORTED, whole=True)
        if reached < head:
            raise _too_long()
        place = None if after is None else (after.instant, after.event_id)
        newer = sorted((e for e in events if place is None or _order(e) > place), key=_order)
        kept = _fit(newer, limit)
        pruned = floor - 1 if floor > 1 else None
        more, late = len(kept) < len(newer), _late(events, after)
        last = _watermark(kept[-1]) if kept else after
        if last is not None:
            # A place in time is a place in the log only when nothing before it is left to read.
            last = replace(last, sequence=None if more or late else head)
        return ReplayPage(kept, more, last, pruned, late)

    def _bounds(self, session: Ledger) -> tuple[int, int]:
        marks = self.state.marks(session)
        return marks.floor, newest(self.log, self.heads, session, marks.hint)

    def _read(
        self, session: Ledger, after: int, head: int, want: int, *, whole: bool = False
    ) -> tuple[list[Mapping[str, Any]], int]:
        """Retained events after a position, and how far they reach."""
        at, events, size = after, list[Mapping[str, Any]](), 0
        for pages in ReadLog(self.log, self.together).batches(session, after, head, min(want, BATCH)):
            for page in pages:
                size += sum(len(record.body or b"") for record in page.records)
                events += [with_sequence(e) for e in page.events() if at < e.position <= head and e.record.body]
                at = max(at, min(page.end, head))
            if size > MAX_READ_BYTES or not (whole or len(events) < want):
                break
        return events, at


def _too_long() -> BadRequest:
    rule = f"A session of more than {MAX_SORTED} events or 32 MiB is replayed by sequence: send afterSequence."
    return BadRequest(rule, field="afterSequence")


def with_sequence(event: Event) -> Mapping[str, Any]:
    content: dict[str, Any] = json.loads(event.record.body or b"{}")
    content["sequence"] = event.position
    return content


def _order(event: Mapping[str, Any]) -> tuple[int, str]:
    return instant(event["ts"]), event["eventId"]


def _watermark(event: Mapping[str, Any]) -> Watermark:
    return Watermark(event["ts"], instant(event["ts"]), event["eventId"], event["sequence"])


def _fit(events: list[Mapping[str, Any]], limit: int) -> list[Mapping[str, Any]]:
    kept, size = list[Mapping[str, Any]](), 0
    for event in events[:limit]:
        size += escaped_bytes(json.dumps(event, ensure_ascii=False).encode())
        if kept and size > PAGE_BYTES:
            break
        kept.append(event)
    return kept


def _late(events: list[Mapping[str, Any]], after: Watermark | None) -> Mapping[str, int]:
    """Events older than the watermark that were committed after the watermark's own event."""
    if after is None:
        return {}
    own = next((e["sequence"] for e in events if e["eventId"] == after.event_id), None)
    if own is None:
        return {}
    late = [e for e in events if e["sequence"] > own and _order(e) < (after.instant, after.event_id)]
    return {"count": len(late), "afterSequence": own} if late else {}
