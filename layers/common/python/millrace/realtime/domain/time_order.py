"""Time order: of events that come in any order, the first ones after a place in (`ts`, `eventId`) order (R6).

It is fed any number of events and holds one page of them.
"""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace.ledger.domain.canonical import escaped_bytes
from millrace.ledger.domain.instants import instant

PAGE_BYTES = 4 * 1024 * 1024
"""Of an answer."""

Event = Mapping[str, Any]
Place = tuple[int, str]
"""An instant in nanoseconds, and an `eventId`."""


def place_of(event: Event) -> Place:
    return instant(event["ts"]), event["eventId"]


def size_of(event: Event) -> int:
    """Bytes that it takes in an answer."""
    return escaped_bytes(json.dumps(event, ensure_ascii=False).encode())


@dataclass(slots=True)
class FirstAfter:
    """The first `limit` events after a place, at most `max_bytes` of them, but one at least."""

    after: Place | None
    limit: int
    max_bytes: int
    left_out: Place | None = None
    """Where the first of those is that did not fit."""
    _kept: list[tuple[Place, int, Event]] = field(default_factory=list)
    _bytes: int = 0

    def add(self, event: Event) -> None:
        place = place_of(event)
        if self.after is not None and place <= self.after:
            return
        if self.left_out is not None and place > self.left_out:
            return
        size = size_of(event)
        insort(self._kept, (place, size, event), key=lambda one: one[0])
        self._bytes += size
        while len(self._kept) > 1 and (len(self._kept) > self.limit or self._bytes > self.max_bytes):
            self.left_out, gone, _ = self._kept.pop()
            self._bytes -= gone

    @property
    def has_more(self) -> bool:
        """Whether there are others after those."""
        return self.left_out is not None

    @property
    def events(self) -> list[Event]:
        return [event for _, _, event in self._kept]


@dataclass(slots=True)
class PassedBy:
    """Events before a watermark that were committed after the watermark's own event: time order does not reach them.

    Fed in the order of sequences.
    """

    at: Place
    own: int | None = None
    """The sequence of the watermark's event."""
    count: int = 0

    def add(self, event: Event) -> None:
        if self.own is not None and place_of(event) < self.at:
            self.count += 1
        elif place_of(event) == self.at:
            self.own = event["sequence"]

    def as_json(self) -> Mapping[str, int]:
        return {"count": self.count, "afterSequence": self.own} if self.own is not None and self.count else {}
