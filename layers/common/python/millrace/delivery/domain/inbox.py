"""A batch as the hub takes it in (D8): which of its events can be kept, and what is said of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millrace.delivery.domain.events import MOST_ID_BYTES
from millrace.delivery.domain.targets import MOST_EVENTS
from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft

MOST_EVENT_BYTES = 256 * 1024
SUCCESS, DUPLICATE, REJECTED = "success", "duplicate", "rejected"

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """An event that cannot be kept. `event_id` is None if it has none that could be answered."""

    event_id: str | None
    error: str


class NothingToKeep(BadRequest):
    """No event of the batch can be kept; the details say why, event by event."""


def journal(tenant: str, team_slug: str) -> Ledger:
    """One ledger a team; an event id is used once in it."""
    return Ledger.of("delivery", tenant, team_slug)


def check_batch(body: Any) -> list[Draft | Refused]:
    """One draft or refusal per event, in order. Raises `BadRequest` if it is no batch, or none of it can be kept."""
    events = body.get("events") if isinstance(body, Mapping) else None
    if not isinstance(events, list) or not 1 <= len(events) <= MOST_EVENTS:
        rule = f"The body is an object with events, a list of 1 to {MOST_EVENTS}."
        raise BadRequest(rule, field="events", value_class=kind_of(events))
    checked = [_check(event) for event in events]
    if not any(isinstance(one, Draft) for one in checked):
        results = [refusal_of(number, one) for number, one in enumerate(checked) if isinstance(one, Refused)]
        raise NothingToKeep("No event of the batch can be kept.", field="events", results=results)
    return checked


def refusal_of(number: int, refused: Refused) -> Result:
    """The result of a refused event; one without an id is named by its place."""
    named = {"index": number} if refused.event_id is None else {}
    return {"event_id": refused.event_id, **named, "status": REJECTED, "error": refused.error}


def _check(event: Any) -> Draft | Refused:
    if not isinstance(event, Mapping):
        return Refused(None, f"an event is an object, not {kind_of(event)}")
    event_id = event.get("event_id")
    if not isinstance(event_id, str) or _problem(event_id):
        return Refused(None, f"event_id {_problem(event_id)}")
    if problem := _problem(event.get("event_type")):
        return Refused(event_id, f"event_type {problem}")
    content = canonical(event)
    if len(content) > MOST_EVENT_BYTES:
        return Refused(event_id, f"the event has {len(content)} bytes; the limit is {MOST_EVENT_BYTES}")
    return Draft(event_id, digest(content), content)


def _problem(text: Any) -> str:
    if not isinstance(text, str):
        return f"must be a string, not {kind_of(text)}"
    if not text.strip():
        return "must not be blank"
    return f"must be at most {MOST_ID_BYTES} bytes" if len(text.encode()) > MOST_ID_BYTES else ""


def merged(results: Sequence[Result]) -> list[Result]:
    """Of an event that is in the batch twice, the second is a duplicate of the first."""
    seen: set[str] = set()
    answered: list[Result] = []
    for result in results:
        again = result["status"] == SUCCESS and result["event_id"] in seen
        answered.append({**result, "status": DUPLICATE} if again else result)
        if result["event_id"] is not None:
            seen.add(result["event_id"])
    return answered
