"""Which deliveries an operator wants to be tried again, many at once (D4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millrace.delivery.domain.families import texts
from millrace.delivery.domain.states import OPEN, Delivery, Status
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.kinds import kind_of

FIELDS: Mapping[str, type] = {
    "status": str,
    "families": list,
    "since_ms": int,
    "until_ms": int,
    "dry_run": bool,
    "after": str,
}
RETRIED = (Status.TERMINAL_FAILED, Status.REJECTED, Status.PENDING, Status.TRANSIENT)
PRUNED = "pruned"
"""The error of an event whose body is gone: another try cannot send it."""
MOST_MS = 2**53 - 1
MOST_PREFIXES, MOST_AFTER_BYTES = 50, 4096


@dataclass(frozen=True, slots=True)
class WantedDeliveries:
    """In this status, of types that begin so (none: all), and last tried in this time, both ends included."""

    status: Status
    prefixes: frozenset[str] = frozenset()
    since_ms: int = 0
    until_ms: int = MOST_MS

    def is_met_by(self, delivery: Delivery, now_ms: int) -> bool:
        """Whatever its type is. What is due already is left as it is, so that asking again changes nothing."""
        is_due = delivery.status in OPEN and (delivery.next_ms or 0) <= now_ms
        in_time = self.since_ms <= delivery.last_ms <= self.until_ms
        return delivery.status is self.status and in_time and not is_due and delivery.error != PRUNED

    def names(self, event_type: str) -> bool:
        return not self.prefixes or any(event_type.startswith(prefix) for prefix in self.prefixes)


@dataclass(frozen=True, slots=True)
class BulkRetry:
    """A request: what is wanted, where to go on, and whether only to look."""

    wanted: WantedDeliveries
    after: str = ""
    dry_run: bool = False


def check_bulk(body: Any) -> BulkRetry:
    """Raises `BadRequest`, naming the field."""
    if not isinstance(body, dict):
        raise BadRequest("The body must be an object.", field="body", value_class=kind_of(body))
    given = {name: value for name, value in body.items() if value is not None}
    for name, value in given.items():
        if name not in FIELDS:
            raise BadRequest(f"A retry has the fields {', '.join(FIELDS)} and no other.", field=str(name)[:64])
        if not isinstance(value, FIELDS[name]) or (FIELDS[name] is int and isinstance(value, bool)):
            raise BadRequest(f"{name} has the wrong type.", field=name, value_class=kind_of(value))
    if given.get("status") not in RETRIED:
        raise BadRequest(f"status is one of {', '.join(RETRIED)}.", field="status")
    for name in ("since_ms", "until_ms"):
        if not 0 <= given.get(name, 0) <= MOST_MS:
            raise BadRequest(f"{name} must be an integer from 0 to {MOST_MS}.", field=name, value_class="integer")
    prefixes = texts(given.get("families", ()), "families")
    if len(prefixes) > MOST_PREFIXES:
        raise BadRequest(f"families has at most {MOST_PREFIXES} prefixes.", field="families")
    after = given.get("after", "")
    if len(after.encode(errors="replace")) > MOST_AFTER_BYTES:
        raise BadRequest("after must be the next of an earlier answer.", field="after")
    wanted = WantedDeliveries(
        Status(given["status"]), prefixes, given.get("since_ms", 0), given.get("until_ms", MOST_MS)
    )
    return BulkRetry(wanted, after, given.get("dry_run", False))
