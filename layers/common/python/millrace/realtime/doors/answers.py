"""How the realtime contract answers: `{ok, …}` bodies, and its own form of errors (R3, R5, R6, R8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millrace.ledger.domain.errors import BadRequest, MillraceError, Throttled, TooLarge
from millrace.realtime.application.publish import Published
from millrace.realtime.application.replay import ReplayPage
from millrace.realtime.application.transcripts import SessionTranscript
from millrace.realtime.ports import Watermark
from millrace.runtime.http import Response, refusal, retry_headers, to_json

INVALID = "INVALID_REALTIME_EVENT"

PROBLEMS: Mapping[str, tuple[int, str, str]] = {
    "conflict": (409, "EVENT_ID_CONFLICT", "This eventId is used by another event of the tenant; send a new one."),
    "forbidden": (403, "FORBIDDEN", "The token does not reach this session."),
    "too_large": (413, "EVENT_TOO_LARGE", "An event may take 96 KiB."),
}


def invalid(errors: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    count = len(errors)
    message = f"The event breaks {count} rule{'s' if count > 1 else ''} of its contract."
    return {"ok": False, "code": INVALID, "message": message, "errors": list(errors), "retryable": False}


def refuse_reader(error: MillraceError) -> Response:
    """Where no event is sent, none can be invalid."""
    return refuse(error, "INVALID_REALTIME_REQUEST")


def refuse(error: MillraceError, code: str = INVALID) -> Response:
    """A malformed request in this contract's words; authorisation and storage errors as everywhere else."""
    if isinstance(error, Throttled):
        return _throttled(error)
    if not isinstance(error, (BadRequest, TooLarge)):
        return refusal(error)
    body = {**invalid([problem_of(error)]), "code": code, "message": error.message, "details": dict(error.details)}
    if isinstance(error, TooLarge):
        body["code"] = "EVENT_TOO_LARGE"
    return Response(to_json(body), error.status)


def problem_of(error: MillraceError) -> dict[str, str]:
    """What is wrong with a request as a whole, as one error of an event."""
    field = str(error.details.get("field", ""))
    return {"pointer": "" if field in ("", "body") else f"/{field}", "message": error.message}


def _throttled(error: Throttled) -> Response:
    """Readable as this contract's error, and as everybody's."""
    body = {"ok": False, "code": error.code, "message": error.message, "errors": [], "retryable": True}
    return Response(to_json({**body, "details": dict(error.details)}), error.status, headers=retry_headers(error))


def published(result: Published) -> tuple[int, dict[str, Any]]:
    if result.problem:
        status, code, message = PROBLEMS[result.problem]
        return status, {"ok": False, "code": code, "message": message, "errors": [], "retryable": False}
    return 200, {"ok": True, "deduped": result.deduped, "event": result.event}


def replayed(session_id: str, page: ReplayPage) -> str:
    body: dict[str, Any] = {
        "ok": True,
        "sessionId": session_id,
        "events": page.events,
        "hasMore": page.has_more,
        "watermark": _watermark(page.watermark),
    }
    if page.pruned_through is not None:
        body["prunedThrough"] = page.pruned_through
    if page.late:
        body["late"] = page.late
    return to_json(body)


def transcribed(session_id: str, told: SessionTranscript) -> str:
    body: dict[str, Any] = {
        "ok": True,
        "sessionId": session_id,
        "sequence": told.sequence,
        "utterances": told.utterances,
        "hasMore": told.has_more,
        "complete": told.complete,
    }
    if told.pruned_through is not None:
        body["prunedThrough"] = told.pruned_through
    return to_json(body)


def _watermark(place: Watermark | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {"sequence": place.sequence, "ts": place.ts, "eventId": place.event_id}
