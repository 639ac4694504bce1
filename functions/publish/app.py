"""POST /v1/realtime/events: validate and store one event or many, each once in the tenant."""

from __future__ import annotations

from typing import Any

from millrace.ledger.domain.errors import Forbidden, Unavailable
from millrace.realtime import wiring
from millrace.realtime.application.count_events import DEDUPED, INVALID
from millrace.realtime.application.publish import Publication
from millrace.realtime.doors.answers import invalid, published, refuse, to_json
from millrace.realtime.doors.validate import Valid, validate
from millrace.runtime import bearer, observe
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.requests import events_of
from millrace.runtime.snapstart import before_snapshot

before_snapshot(lambda: (bearer.tokens(), wiring.publish(), wiring.realtime_state()))


def answer(request: Request) -> Response:
    identity = request.identity()
    events, batch = events_of(request.json())
    checked = [validate(event) for event in events]
    valid = [Publication(one.event, one.instant) for one in checked if isinstance(one, Valid)]
    stored = iter(wiring.publish()(identity, valid))
    answers: list[tuple[int, dict[str, Any]]] = []
    for one in checked:
        if isinstance(one, Valid):
            answers.append(published(next(stored)))
        else:
            observe.logger().warning("realtime_event_validation_failed", errors=one.errors, tenant=identity.tenant)
            answers.append((400, invalid(one.errors)))
    refused = len(checked) - len(valid)
    deduped = sum(bool(body.get("deduped")) for _, body in answers)
    emitted = sum(body["ok"] and not body["deduped"] for _, body in answers)
    try:
        wiring.realtime_state().add(identity.tenant, {INVALID: refused, DEDUPED: deduped})
    except Unavailable:
        observe.logger().warning("realtime_counters_behind", invalid=refused, deduped=deduped)
    observe.count({"Emitted": emitted, "Invalid": refused, "Deduped": deduped}, contract="realtime")
    request.noted.update(emitted=emitted, invalid=refused, deduped=deduped)
    for event, (_, body) in zip(events, answers, strict=True):
        if batch and not body["ok"] and isinstance(event, dict) and isinstance(event.get("eventId"), str):
            body["eventId"] = event["eventId"][:256]
    if batch:
        return Response(to_json({"ok": all(body["ok"] for _, body in answers), "results": [b for _, b in answers]}))
    status, body = answers[0]
    if status == 403:
        raise Forbidden("The token does not reach this session.", field="sessionId")
    return Response(to_json(body), status)


handler = endpoint(answer, refuse)
