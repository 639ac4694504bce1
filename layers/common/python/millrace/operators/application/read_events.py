"""Read events: a ledger by position, by time, or one event by its id with what became of it at each target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millrace.delivery.application.find_event import FindEvent
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.sources import outside_id
from millrace.delivery.ports.targets import Listing, Positions
from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import BadRequest, NotFound
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event
from millrace.ledger.ports import Log, Marks, State, Together
from millrace.operators.application.known_targets import KnownTargets
from millrace.operators.domain.event_view import event_json, may_see, type_of
from millrace.operators.domain.reach import require_ledger

LOOKED_AT = 2_000
"""Positions that one answer looks at."""
MOST_BYTES = 1_000_000
"""Of stored events in one answer, unless the first alone has more."""
AT_ONCE = 500
MAX_ID_BYTES = 1_024

Section = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events; None: all of them."""

    partition: str | None = None
    type: str | None = None

    def __call__(self, ledger: Ledger, event: Event) -> bool:
        if self.partition is not None and self.partition not in event.record.partitions:
            return False
        return self.type is None or self.type == type_of(ledger, event)


@dataclass(frozen=True, slots=True)
class ReadEvents:
    log: Log
    state: State
    heads: Heads
    together: Together
    find_event: FindEvent
    targets: KnownTargets
    positions: Positions
    listing: Listing

    def __call__(
        self,
        identity: Identity,
        contract: str,
        scope: str,
        *,
        after: int,
        at_ms: int | None,
        limit: int,
        wanted: EventFilter,
    ) -> Section:
        ledger, marks, head = self._entered(identity, contract, scope)
        at = min(head, after) if at_ms is None else self._before(ledger, head, at_ms)
        events: list[Section] = []
        size = 0
        for event in self._events(ledger, at, min(head, at + LOOKED_AT)):
            if may_see(identity, ledger, event) and wanted(ledger, event):
                size += len(event.record.body or b"")
                if events and (len(events) == limit or size > MOST_BYTES):
                    break
                events.append(event_json(ledger, event))
            at = event.position
        return {"events": events, "next_after": at, "head": head, "floor": marks.floor}

    def one(self, identity: Identity, contract: str, scope: str, event_id: str) -> Section:
        """Raises `NotFound` if the bearer may not see it, too."""
        if not event_id or len(event_id.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
            raise BadRequest(f"id must be a string of 1 to {MAX_ID_BYTES} bytes.", field="id")
        ledger = require_ledger(identity, contract, scope)
        event = self.find_event.committed(ledger, event_id)
        if event is None or not may_see(identity, ledger, event):
            raise NotFound("There is no such event in this ledger.", field="id")
        heard = [target for target in self.targets(identity) if target.hears(ledger.name)]
        deliveries = [self._delivery(target, ledger, event) for target in heard]
        return {"event": event_json(ledger, event), "deliveries": deliveries}

    def _entered(self, identity: Identity, contract: str, scope: str) -> tuple[Ledger, Marks, int]:
        ledger = require_ledger(identity, contract, scope)
        marks = self.state.marks(ledger)
        head = newest(self.log, self.heads, ledger, marks.hint)
        if head == 0:
            raise NotFound("There is no such ledger.", field="scope")
        return ledger, marks, head

    def _events(self, ledger: Ledger, after: int, last: int) -> Iterator[Event]:
        for pages in ReadLog(self.log, self.together).batches(ledger, after, last, AT_ONCE):
            for event in (event for page in pages for event in page.events()):
                if after < event.position <= last:
                    yield event

    def _before(self, ledger: Ledger, head: int, at_ms: int) -> int:
        """The position before the first event of this time or later, by halving. Writers' clocks may differ: then it is
        near."""
        low, high = 0, head
        while low < high:
            middle = (low + high) // 2
            page = self.log.holding(ledger, middle + 1)
            if page is None or page.time_ms >= at_ms:
                high = middle
            else:
                low = max(middle + 1, min(page.end, high))
        return low

    def _delivery(self, target: HubTarget, ledger: Ledger, event: Event) -> Section:
        found = self.listing.at(target.key, ledger.name, event.position)
        named = {"target_id": target.id, "event_id": outside_id(ledger.name, event.record.id, scoped=target.scoped)}
        if found is not None:
            return {
                **named,
                "state": "delivered" if found.delivered else found.status.value,
                "attempts": found.attempts,
                "first_ms": found.first_ms,
                "last_ms": found.last_ms,
                "next_ms": found.next_ms,
                "error": found.error or None,
                "delivered_before_ms": found.delivered_ms,
            }
        known = self.positions.of(target.target(), [ledger.name]).get(ledger.name)
        passed = known is not None and known.at >= event.position
        nothing = dict.fromkeys(("first_ms", "last_ms", "next_ms", "error", "delivered_before_ms"))
        return {**named, "state": "not_sent" if passed else "waiting", "attempts": 0, **nothing}
