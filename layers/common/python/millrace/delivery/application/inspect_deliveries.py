"""Inspect deliveries: what became of each event at a target, and another try by hand (D4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millrace.delivery.application.manage_targets import ManageTargets
from millrace.delivery.application.retry_delivery import Retry
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.sources import JOURNAL, outside_id, place_of
from millrace.delivery.domain.states import Status
from millrace.delivery.ports.deliveries import Found
from millrace.delivery.ports.targets import Listing, Wake, Wakes
from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.ledger.domain.errors import BadRequest, NotFound

Section = dict[str, Any]
MOST_RUNS_COUNTED = 1_000
UNDELIVERED = (Status.PENDING, Status.REJECTED, Status.TRANSIENT, Status.TERMINAL_FAILED)


@dataclass(frozen=True, slots=True)
class InspectDeliveries:
    targets: ManageTargets
    listing: Listing
    retrying: Retry
    wakes: Wakes

    def page(self, identity: Identity, target_id: str, status: str | None, after: str, limit: int) -> Section:
        identity.require(OPERATOR)
        if status is not None and status not in set(Status):
            raise BadRequest(f"status is one of {', '.join(Status)}.", field="status")
        target = self.targets.find(identity, target_id).target
        page = self.listing.page(target.key, Status(status) if status else None, after, limit)
        known = [replace(found, event_id=known_as(target, found)) for found in page.found]
        return {"deliveries": [delivery_json(found) for found in known], "next_after": page.after}

    def attempts(self, identity: Identity, target_id: str, event_id: str | None) -> Section:
        """One delivery with its last attempts. Raises `NotFound` if the event was never attempted."""
        identity.require(OPERATOR)
        if not event_id:
            raise BadRequest("event_id is missing.", field="event_id")
        found = self.listing.get(self.targets.find(identity, target_id).target.key, event_id)
        if found is None:
            raise NotFound("This event has not been attempted at this target.", field="event_id")
        history = [
            {"at_ms": one.at_ms, "status": one.status.value, "answer": one.answer, "error": one.error or None}
            for one in found.delivery.history
        ]
        return {"target_id": target_id, **delivery_json(found), "history": history}

    def list_counted(self, identity: Identity) -> Section:
        """The targets, each with how many of its deliveries are not done, by state."""
        identity.require(OPERATOR)
        return {
            "targets": [
                {**self.targets.get(identity, kept.target.id), **self._counted(kept.target.key)}
                for kept in self.targets.known_to(identity)
            ]
        }

    def _counted(self, target_key: str) -> Section:
        counted = self.listing.count_some(target_key, MOST_RUNS_COUNTED)
        counts = {status.value: counted.counts.get(status, 0) for status in UNDELIVERED}
        return {"deliveries": counts, "counts_complete": counted.complete}

    def retry(self, identity: Identity, target_id: str, event_id: str) -> Section:
        """Raises `NotFound` if it was never attempted, `Conflict` if there is nothing to retry."""
        identity.require(OPERATOR)
        if not event_id:
            raise BadRequest("event_id is missing.", field="event_id")
        found = self.retrying(self.targets.find(identity, target_id).target.key, event_id)
        self.wakes.send([Wake(identity.tenant, target_id, (found.ledger,))])
        return {"event_id": event_id, "target_id": target_id, "retried": True}


def known_as(target: HubTarget, found: Found) -> str:
    """The id by which the target knows an event; one that is scoped already names its contract."""
    if not target.scoped or found.event_id.startswith(f"{JOURNAL}:") or place_of(found.ledger).contract != JOURNAL:
        return found.event_id
    return outside_id(found.ledger, found.event_id, scoped=True)


def delivery_json(found: Found) -> Section:
    place, one = place_of(found.ledger), found.delivery
    return {
        "event_id": found.event_id,
        "event_type": found.event_type or None,
        "contract": place.contract,
        "scope": place.scope,
        "position": found.position,
        "status": one.status.value,
        "attempts": one.attempts,
        "first_ms": one.first_ms,
        "last_ms": one.last_ms,
        "next_ms": one.next_ms,
        "error": one.error or None,
        "delivered_before_ms": one.delivered_ms,
    }
