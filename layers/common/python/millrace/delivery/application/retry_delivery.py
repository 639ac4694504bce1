"""Retry: an operator's word that a delivery which was given up, or waits, is to be tried again now (D4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millrace.delivery.domain.states import Status, retried
from millrace.delivery.ports.deliveries import START, Audits, Deliveries, Found
from millrace.ledger.domain.errors import Conflict, NotFound

PAGE = 500


@dataclass(frozen=True, slots=True)
class Retry:
    deliveries: Deliveries
    journal: Audits
    clock: Callable[[], int]

    def __call__(self, target_id: str, event_id: str) -> Found:
        """Raises `NotFound` if it was never attempted, `Conflict` if it is delivered or changed meanwhile."""
        found = self.deliveries.get(target_id, event_id)
        if found is None:
            raise NotFound("This event has not been attempted at this target.", event_id=event_id, target=target_id)
        if found.delivery.delivered:
            raise Conflict("This event is delivered; there is nothing to retry.", event_id=event_id, target=target_id)
        if not self._again(found):
            raise Conflict("This delivery has just changed; look again.", event_id=event_id, target=target_id)
        return found

    def all_terminal(self, target_id: str) -> int:
        """Every delivery of a target that was given up; returns how many."""
        count, after = 0, START
        while page := self.deliveries.find(target_id, Status.TERMINAL_FAILED, after, PAGE):
            count += sum(self._again(found) for found in page)
            after = page[-1].place
        return count

    def _again(self, found: Found) -> bool:
        now_ms = self.clock()
        if not self.deliveries.replace(found, retried(found.delivery, now_ms)):
            return False
        self.journal.audit("retried_by_hand", [found.event_id], found.target_id, now_ms)
        return True
