"""What stands behind a stub target: it takes every event once, says so, and can be looked into."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from millrace.delivery.domain.outcomes import Response
from millrace.delivery.domain.targets import MOST_EVENTS
from millrace.ledger.domain import strict_json
from millrace.ledger.domain.errors import Rejected

MOST_BYTES = 32 * 1024 * 1024


def accept(event: Any) -> dict[str, Any]:  # noqa: ARG001
    return {"status": "success"}


@dataclass(slots=True)
class StubInbox:
    """
    The batch API (D8), in memory. `decide` says what becomes of an event that is new here.

    Only what it accepts is kept in `events`, by id, in order of arrival; the same id again is a duplicate.
    """

    decide: Callable[[Any], dict[str, Any]] = accept
    events: dict[str, Any] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def __call__(self, body: bytes) -> Response:
        try:
            request = strict_json.parse(body, MOST_BYTES)
        except Rejected as error:
            return _response(error.status, {"code": error.code, "message": error.message, "details": {}})
        events = request.get("events") if isinstance(request, dict) else None
        if not isinstance(events, list) or not 1 <= len(events) <= MOST_EVENTS or not all(map(_has_id, events)):
            message = f"events is a list of 1 to {MOST_EVENTS} objects, each with an event_id."
            return _response(400, {"code": "bad_request", "message": message, "details": {}})
        with self.lock:
            return _response(200, {"results": [self._take(event) for event in events]})

    def _take(self, event: Any) -> dict[str, Any]:
        event_id = event["event_id"]
        if event_id in self.events:
            return {"event_id": event_id, "status": "duplicate"}
        result = self.decide(event)
        if result.get("status") in ("success", "accepted", "warning"):
            self.events[event_id] = event
        return {"event_id": event_id, **result}


def _has_id(event: Any) -> bool:
    return isinstance(event, dict) and isinstance(event.get("event_id"), str) and bool(event["event_id"])


def _response(status: int, body: Any) -> Response:
    return Response(status, json.dumps(body).encode())
