"""Gather: collect events of many ledgers for one archive object, as many as fit into it."""

from __future__ import annotations

from dataclasses import dataclass, field

from millrace.lake.domain.archive import ArchiveObject, EventWriter
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event, Page


@dataclass(frozen=True, slots=True)
class ObjectLimits:
    """Of one object. The row of a reservation must stay an item, and an object must fit into a function's memory."""

    events: int = 20_000
    bytes: int = 16 * 1024 * 1024
    ledgers: int = 500


DEFAULT = ObjectLimits()


@dataclass(slots=True)
class Gathered:
    """Events on their way into an object."""

    limits: ObjectLimits
    events: dict[str, list[Event]] = field(default_factory=dict)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    count: int = 0
    size: int = 0

    def take(self, ledger: Ledger, page: Page) -> bool:
        """False when it does not fit any more; the first one always does."""
        size = sum(len(record.body or b"") for record in page.records)
        fits = self.count + len(page.records) <= self.limits.events and self.size + size <= self.limits.bytes
        if self.spans and (not fits or (ledger.name not in self.spans and len(self.spans) >= self.limits.ledgers)):
            return False
        first, _ = self.spans.get(ledger.name, (page.first, page.end))
        self.spans[ledger.name] = (first, page.end)
        self.events.setdefault(ledger.name, []).extend(page.events())
        self.count += len(page.records)
        self.size += size
        return True

    def written(self) -> ArchiveObject | None:
        """None if every one of the events was pruned."""
        writer = EventWriter()
        for ledger, events in self.events.items():
            for event in events:
                if event.record.body is not None:
                    writer.add(ledger, event)
        return writer.finish() if len(writer) else None
