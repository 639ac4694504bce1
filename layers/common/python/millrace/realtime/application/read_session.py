"""Read a session's log: what is retained after a sequence, stretch by stretch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event
from millrace.ledger.ports import Log, State, Together

MAX_READ_BYTES = 32 * 1024 * 1024
"""Of bodies that are held in memory at once, about."""
BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """The retained events after a position, up to `reached`. `gone`: the last position there that was pruned, or 0."""

    events: list[Mapping[str, Any]]
    reached: int
    floor: int
    head: int
    gone: int


@dataclass(frozen=True, slots=True)
class ReadSession:
    log: Log
    state: State
    heads: Heads
    together: Together

    def bounds(self, session: Ledger) -> tuple[int, int]:
        """The floor and the head."""
        marks = self.state.marks(session)
        return marks.floor, newest(self.log, self.heads, session, marks.hint)

    def after(self, session: Ledger, sequence: int) -> Stretch:
        """What is retained after a sequence, as much as one request may hold."""
        floor, head = self.bounds(session)
        read = self.stretch(session, sequence, floor, head, BATCH, whole=True)
        return replace(read, gone=max(read.gone, floor - 1 if sequence < floor - 1 else 0))

    def stretch(self, session: Ledger, after: int, floor: int, head: int, want: int, *, whole: bool = False) -> Stretch:
        """About `want` events; `whole`: all up to the head, unless they are too many for the memory."""
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
