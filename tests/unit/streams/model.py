"""A small model of a polled stream: what a poll must answer, said in a few lines and without any storage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from millrace.streams.domain.errors import (
    BatchTooLarge,
    CursorExpired,
    InvalidArgument,
    MaxPollEventsExceeded,
    SdkError,
    StreamDegraded,
)
from millrace.streams.domain.negotiate import StreamLimits
from tests.unit.streams.hub import RUNTIME


@dataclass
class Subscription:
    stream: str
    cursors: list[tuple[str, int]] = field(default_factory=list)
    """Every cursor it was ever given, and the position that one stands at."""
    degraded: bool = False


@dataclass(frozen=True)
class Answer:
    """Positions in their order; with `dropped`, a gap before them. `to` is where the next cursor stands."""

    positions: Sequence[int]
    to: int
    dropped: int = 0


@dataclass
class Stream:
    name: str
    events: list[dict[str, Any]] = field(default_factory=list)
    """As they were sent. The first has the position 1."""
    floor: int = 1
    emptied: int = 0
    """Up to here bodies are gone; the floor may not say so yet."""

    def seen(self, position: int) -> dict[str, Any]:
        """An event as its readers see it."""
        event = self.events[position - 1]
        return {**event, "runtime_id": RUNTIME, "stream_id": self.name, "seq_no": position}

    def size(self, position: int) -> int:
        return len(json.dumps(self.seen(position), ensure_ascii=False, separators=(",", ":")).encode())

    def gap(self, left: int, ts_ms: int) -> dict[str, Any]:
        """T9: the first batch of a stream whose events before `left` are gone begins with this."""
        return {
            "event_id": f"gap-{left - 1}",
            "runtime_id": RUNTIME,
            "stream_id": self.name,
            "seq_no": left - 1,
            "contract_version": 2,
            "ts_ms": ts_ms,
            "event_type": "StreamGap",
            "severity": "warn",
            "source_component": "millrace",
            "payload": {"expected_seq_no": 1, "observed_seq_no": left, "dropped_count": left - 1},
        }

    def first(self, limits: StreamLimits, wanted: int | None, ts_ms: int, readable: int) -> Answer | type[SdkError]:
        """A poll without cursor; nothing above `readable` can be read yet."""
        refused = _refused(wanted, limits)
        if refused is not None:
            return refused
        left = max(self.floor, min(self.emptied, readable) + 1)
        most = limits.max_poll_events if wanted is None else wanted
        if left == 1:
            return self._fill(0, most, 1, limits, readable)
        size = 2 + len(json.dumps(self.gap(left, ts_ms), separators=(",", ":")).encode())
        if size > limits.max_batch_bytes:
            return BatchTooLarge
        rest = self._fill(left - 1, most - 1, size, limits, readable)
        return Answer(rest.positions, rest.to, left - 1) if isinstance(rest, Answer) else Answer([], left - 1, left - 1)

    def next(
        self, subscription: Subscription, at: int, limits: StreamLimits, wanted: int | None, readable: int
    ) -> Answer | type[SdkError]:
        """A poll with a cursor that stands at `at`."""
        refused = _refused(wanted, limits)
        if refused is not None:
            return refused
        if subscription.degraded:
            return StreamDegraded
        if at < self.floor - 1 or at < min(self.emptied, readable):
            return CursorExpired
        return self._fill(at, limits.max_poll_events if wanted is None else wanted, 1, limits, readable)

    def _fill(self, at: int, most: int, size: int, limits: StreamLimits, readable: int) -> Answer | type[SdkError]:
        positions: list[int] = []
        while len(positions) < most and at < readable:
            size += self.size(at + 1) + 1
            if size > limits.max_batch_bytes:
                return Answer(positions, at) if positions else BatchTooLarge
            at += 1
            positions.append(at)
        return Answer(positions, at)


def payload_size(event: dict[str, Any]) -> int:
    return len(json.dumps(event["payload"], separators=(",", ":")).encode())


def _refused(wanted: int | None, limits: StreamLimits) -> type[SdkError] | None:
    if wanted is not None and wanted < 1:
        return InvalidArgument
    return MaxPollEventsExceeded if wanted is not None and wanted > limits.max_poll_events else None
