"""Publishing over HTTP, apart from the readers: one event or many, with one result each (R3, R5, R9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millrace.ledger.domain.errors import BadRequest, Forbidden, TooLarge
from millrace.ledger.domain.metrics import Metric
from millrace.realtime.application.publish import TOO_LARGE, Published
from millrace.realtime.domain.verdict import Invalid
from millrace.realtime.doors.answers import PROBLEMS, invalid, problem_of, published
from millrace.realtime.doors.validate import validate
from millrace.runtime import observe
from millrace.runtime.http import Request, Response, to_json
from millrace.runtime.requests import events_of

if TYPE_CHECKING:
    from millrace.realtime.application.take_events import TakeEvents, TakenEvents

MAX_SHOWN = 256


def publish(take: TakeEvents, request: Request) -> Response:
    identity = request.identity()
    try:
        sent, is_batch = events_of(request.json())
    except (BadRequest, TooLarge) as error:
        # R3: what cannot be read as events is one invalid event.
        _observe(take(identity, [Invalid([problem_of(error)])]), request, identity.tenant)
        raise
    taken = take(identity, [validate(event) for event in sent], request.trace)
    _observe(taken, request, identity.tenant)
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


def _observe(taken: TakenEvents, request: Request, tenant: str) -> None:
    request.noted.update(emitted=taken.emitted, invalid=taken.invalid, deduped=taken.deduped)
    for result in taken.results:
        errors = result.errors if isinstance(result, Invalid) else _too_large(result)
        if errors:
            observe.logger().warning("realtime_event_validation_failed", errors=errors, tenant=tenant)
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


def _too_large(result: Published) -> list[dict[str, str]]:
    return [{"pointer": "", "message": PROBLEMS[TOO_LARGE][2]}] if result.problem == TOO_LARGE else []
