"""Random archives: repeats across objects and runs, late objects, unknown versions, no positions, skewed clocks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from millrace.lake.domain.archive import SUFFIX, EventWriter, sortable_time
from millrace.lake.domain.registry import FALLBACK, Known, Registry
from millrace.ledger.domain.instants import utc_text
from tests.jobs.lake import NOW, line

Row = dict[str, Any]
DAY = 86_400_000

REGISTRY = Registry(
    {
        "order.placed": Known({1: {}, 2: {"channel": "web"}}),
        "order.paid": Known({1: {"fee": 0.5}, 3: {"fee": 1, "tags": []}}, FALLBACK),
    }
)
TEXTS = ('say "hi"', ',"payload":{"x":1}', "naïve 😀", "back\\slash", "line\nbreak", "\u2028", "")


class Archives:
    """`runs()` gives, run by run, the objects that are new, by name."""

    def __init__(self, seed: int, events: int = 60, runs: int = 3) -> None:
        self.random = random.Random(seed)
        self.events = events
        self.count = runs
        self.used = 0

    def runs(self) -> Iterator[dict[str, list[Row]]]:
        everything: list[Row] = []
        for _ in range(self.count):
            fresh = [self._line() for _ in range(self.events)]
            repeated = [self._again(row) for row in self.random.choices([*everything, *fresh], k=self.events // 4)]
            everything += fresh
            lines = [*fresh, *repeated]
            self.random.shuffle(lines)
            objects: dict[str, list[Row]] = {}
            while lines:
                size = self.random.randint(1, 15)
                objects[self._name()] = lines[:size]
                del lines[:size]
            yield objects

    def _name(self) -> str:
        """Some sort before those of earlier runs."""
        self.used += 1
        time_ms = NOW + self.random.randint(-5, 5) * DAY
        return f"{sortable_time(time_ms)}-{self.used:032x}{SUFFIX}"

    def _line(self) -> Row:
        number = self.random.randint(1, self.events * self.count)
        make = self.random.choice((self._sync, self._catalog, self._catalog, self._spoken))
        skew = self.random.randint(-2 * DAY, 2 * DAY)
        fraction = self.random.choice(("", ".1", ".123456789", ".000001"))
        row = {
            **make(number),
            "committed_at": NOW + self.random.randint(0, 3 * DAY),
            "occurred_at": _text(NOW + skew, fraction),
        }
        if self.random.random() < 0.2:
            del row["sequence_position"]
        return row

    def _again(self, row: Row) -> Row:
        """The same event once more, or another one that uses its key."""
        changes: Row = {}
        if self.random.random() < 0.4:
            changes["committed_at"] = row["committed_at"] + self.random.randint(-DAY, DAY)
        if self.random.random() < 0.3:
            changes["sequence_position"] = self.random.randint(1, 500)
        return {**row, **changes}

    def _sync(self, number: int) -> Row:
        payload = {"event": {"type": "set", "payload": {"n": number, "text": self.random.choice(TEXTS)}}}
        ledger = f"sync#acme#{self.random.choice(('demo', 'other'))}"
        partitions = self.random.sample(["p", "q", "ü/x"], self.random.randint(1, 3))
        return line(ledger, f"k{number}", number, payload=payload, partitions=partitions, client_id="c1")

    def _catalog(self, number: int) -> Row:
        event_type = self.random.choice(("order.placed", "order.paid", "order.lost", "sync.set"))
        payload: Row = {"n": number, "price": self.random.choice((1.5, 1e21, -0.0, 10**30, 0.1))}
        if self.random.random() < 0.3:
            payload = self.random.choice(({}, {"fee": 7}, {"fee": None, "tags": ["a"]}))
        version = self.random.randint(1, 4)
        trace = {"trace_id": f"t{number}"} if number % 2 else {}
        return line(
            "catalog#acme#orders",
            f"k{number}",
            number,
            event_type=event_type,
            event_version=version,
            payload=payload,
            **trace,
        )

    def _spoken(self, number: int) -> Row:
        kind = self.random.choice(("transcript.partial", "transcript.final", "call.connecting"))
        session = self.random.choice(("s1", "s2"))
        ts = _text(NOW + self.random.randint(0, 2) * 1000, self.random.choice(("", ".5", ".000000001")))
        spoken: Row = {"callId": "c"}
        if kind.startswith("transcript"):
            spoken = {
                "utteranceId": f"u{self.random.randint(1, 6)}",
                "speaker": "user",
                "text": self.random.choice(TEXTS),
                "startMs": self.random.choice((0, 1.0, 250)),
                "endMs": 1000,
            }
        event_id = f"{self.random.choice('aé😀z')}{number}"
        body = {"eventId": event_id, "sessionId": session, "ts": ts, "type": kind, "payload": spoken}
        return line(f"realtime#acme#{session}", event_id, number, payload=body, event_type=f"realtime.{kind}")


def as_object(lines: list[Row]) -> bytes:
    """The bytes that `EventWriter` makes of these lines; the name is the test's own."""
    writer = EventWriter()
    for one in lines:
        writer.add_line(one)
    return writer.finish().data


def _text(time_ms: int, fraction: str) -> str:
    return utc_text(time_ms // 1000 * 1_000_000_000).removesuffix("Z") + fraction + "Z"
