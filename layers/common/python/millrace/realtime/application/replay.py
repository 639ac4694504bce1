"""Replay: a session's events from a sequence, a watermark or a consumer's checkpoint on (R6).

By sequence is the primary way: nothing that arrives is ever before a cursor. A watermark is a place in (`ts`,
`eventId`) order; an event that arrives late with an older `ts` is not after it. Such events are counted in the answer,
with the sequence from which to read them, so that a watermark reader is told and never loses them unknowingly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.instants import instant
from millrace.ledger.domain.names import Ledger
from millrace.realtime.application.order_in_time import OrderInTime
from millrace.realtime.application.read_session import ReadSession
from millrace.realtime.domain.session_access import readable_session
from millrace.realtime.domain.time_order import PAGE_BYTES, size_of
from millrace.realtime.ports import Checkpoints, Watermark


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
    read: ReadSession
    order: OrderInTime
    checkpoints: Checkpoints

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

    def _by_sequence(self, session: Ledger, after: int, limit: int, at: Watermark | None) -> ReplayPage:
        floor, head = self.read.bounds(session)
        read = self.read.stretch(session, after, floor, head, limit)
        kept = _fit(read.events, limit)
        reached = read.reached if len(kept) == len(read.events) else kept[-1]["sequence"]
        last = _watermark(kept[-1]) if kept else at
        # Pages are emptied before the floor is raised, and a pruner may die in between.
        pruned = max(floor - 1 if after < floor - 1 else 0, read.gone if read.gone <= reached else 0)
        return ReplayPage(kept, reached < head, last, pruned or None)

    def _by_time(self, session: Ledger, after: Watermark | None, limit: int) -> ReplayPage:
        found = self.order(session, None if after is None else (after.instant, after.event_id), limit)
        last = _watermark(found.events[-1]) if found.events else after
        if last is not None:
            # A place in time is a place in the log only when nothing before it is left to read.
            last = replace(last, sequence=None if found.has_more or found.late else found.head)
        late = {} if found.own is None or not found.late else {"count": found.late, "afterSequence": found.own}
        return ReplayPage(found.events, found.has_more, last, found.gone or None, late)


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
