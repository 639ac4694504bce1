"""An event as the journal takes it: a JSON object with an id and a type, kept byte for byte (D3, D5, D8)."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.ledger.domain import strict_json
from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.errors import BadRequest

MOST_EVENT_BYTES = 16 * 1024 * 1024
MOST_ID_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Captured:
    """`body` is what was given and what goes out. `digest` is of the canonical content: equal means the same event."""

    event_id: str
    event_type: str
    body: bytes
    digest: bytes
    coalesce_key: str | None = None


def captured(body: bytes, coalesce_key: str | None = None) -> Captured:
    """Read an event. Raises `BadRequest` or `TooLarge`, naming the field and never its value."""
    event = strict_json.parse(body, MOST_EVENT_BYTES)
    if not isinstance(event, dict):
        raise BadRequest("An event is a JSON object.", field="event")
    for name in ("event_id", "event_type"):
        value = event.get(name)
        if not isinstance(value, str) or not value.strip():
            raise BadRequest(f"{name} must be a non-empty string.", field=name)
        if len(value.encode()) > MOST_ID_BYTES:
            raise BadRequest(f"{name} is longer than {MOST_ID_BYTES} bytes.", field=name, max_bytes=MOST_ID_BYTES)
    if coalesce_key == "":
        raise BadRequest("coalesce_key is empty; leave it out instead.", field="coalesce_key")
    return Captured(event["event_id"], event["event_type"], body, digest(canonical(event)), coalesce_key)


def may_supersede(*, attempted: bool, superseded: bool, removed: bool) -> bool:
    """Whether a newer event with the same coalesce key may replace this one: until its first attempt begins (D5)."""
    return not (attempted or superseded or removed)
