"""What requests of several contracts have in common: one event or many, and whole numbers in a query."""

from __future__ import annotations

from typing import Any

from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.kinds import kind_of

MAX_BATCH = 100


def events_of(body: Any) -> tuple[list[Any], bool]:
    """The events of a publish request, and whether it was a batch. An envelope has no key `events`."""
    if not isinstance(body, dict) or "events" not in body:
        return [body], False
    events = body["events"]
    if not isinstance(events, list) or not 1 <= len(events) <= MAX_BATCH:
        raise BadRequest(
            f"events must be a list of 1 to {MAX_BATCH} events.", field="events", value_class=kind_of(events)
        )
    if body.keys() != {"events"}:
        raise BadRequest("A batch has the key events and no other.", field="events")
    return events, True


def whole(field: str, text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 16 or not low <= int(text) <= high:
        raise BadRequest(f"{field} must be an integer from {low} to {high}.", field=field)
    return int(text)


def flag_of(field: str, text: str | None) -> bool:
    if text not in (None, "true", "false"):
        raise BadRequest(f"{field} must be true or false.", field=field)
    return text == "true"
