"""The realtime contract's readers: replay, checkpoints, transcripts, metrics, schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from millrace.ledger.domain.errors import NotFound
from millrace.realtime import wiring
from millrace.realtime.doors.answers import refuse_reader
from millrace.realtime.doors.readers import checkpoint, events, metrics, transcript
from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint, to_json
from millrace.runtime.snapstart import before_snapshot

SESSIONS = "/v1/realtime/sessions/{sessionId}"

before_snapshot(lambda: (bearer.tokens(), wiring.transcripts(), wiring.realtime_metrics()))


def schema(request: Request) -> Response:
    request.identity()
    known = _schemas()
    if request.path("type") not in known:
        raise NotFound(f"No such type; known: {', '.join(sorted(known))}.", field="type")
    return Response(to_json(known[request.path("type")]), content_type="application/schema+json")


@cache
def _schemas() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((Path(__file__).parent / "schemas.json").read_text())
    return loaded


ROUTES: dict[str, Callable[[Request], Response]] = {
    f"GET {SESSIONS}/events": lambda request: events(wiring.replay(), request),
    f"POST {SESSIONS}/checkpoint": lambda request: checkpoint(wiring.checkpoint(), request),
    f"GET {SESSIONS}/transcript": lambda request: transcript(wiring.transcripts(), request),
    "GET /v1/realtime/metrics": lambda request: metrics(wiring.realtime_metrics(), request),
    "GET /v1/realtime/schemas/{type}": schema,
}

handler = endpoint(lambda request: ROUTES[request.route](request), refuse_reader)
