"""Publishing over HTTP, apart from the readers: one event or many, with one result each (R3, R5, R9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millrace.ledger.domain.errors import Forbidden
from millrace.ledger.domain.metrics import Metric
from millrace.realtime.application.publish import Published
from millrace.realtime.doors.answers import invalid, published
from millrace.realtime.doors.validate import validate
from millrace.runtime import observe
from millrace.runtime.http import Request, Response, to_json
from millrace.runtime.requests import events_of

if TYPE_CHECKING:
    from millrace.realtime.application.take_events import TakeEvents, TakenEvents

MAX_SHOWN = 256


def publish(take: TakeEvents, request: Request) -> Response:
    identity = request.identity()
    sent, is_batch = events_of(request.json())
    taken = take(identity, [validate(event) for event in sent])
    _observe(taken, identity.tenant)
    request.noted.update(emitted=taken.emitted, invalid=taken.invalid, deduped=taken.deduped)
    answers = [
        published(result) if isinstance(result, Published) else (400, invalid(result.errors))
        for result in taken.results
    ]
    if is_batch:
        results = [{**body, **_id_of(event, body)} for event, (_, body) in zip(sent, answers, strict=True)]
        return Response(to_json({"ok": all(body["ok"] for body in results), "results": results}))
    status, body = answers[0]
    if status == Forbidden.status:
        raise Forbidden(body["message"], field="sessionId")
    return Response(to_json(body), status)


def _id_of(event: Any, body: dict[str, Any]) -> dict[str, str]:
    """A refused event of a batch is named by its id, if it has one."""
    known = event.get("eventId") if isinstance(event, dict) and not body["ok"] else None
    return {"eventId": known[:MAX_SHOWN]} if isinstance(known, str) else {}


def _observe(taken: TakenEvents, tenant: str) -> None:
    for result in taken.results:
        if not isinstance(result, Published):
            observe.logger().warning("realtime_event_validation_failed", errors=result.errors, tenant=tenant)
    if not taken.counted:
        observe.logger().warning("realtime_counters_behind", invalid=taken.invalid, deduped=taken.deduped)
    observe.count(
        {
            Metric.EVENTS_COMMITTED: taken.emitted,
            Metric.EVENTS_DEDUPLICATED: taken.deduped,
            Metric.EVENTS_REFUSED: taken.invalid,
        },
        contract="realtime",
    )
