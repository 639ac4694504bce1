"""Reads a runtime's streams: polls with a cursor, and its status."""

from __future__ import annotations

from collections.abc import Callable

from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot
from millrace.streams import wiring
from millrace.streams.doors.http import poll, refuse, status

before_snapshot(lambda: (bearer.tokens(), wiring.poll(), wiring.runtime_status()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    "GET /v1/runtimes/{runtime_id}/streams/{stream_id}/events": lambda request: poll(wiring.poll(), request),
    "GET /v1/runtimes/{runtime_id}/status": lambda request: status(wiring.runtime_status(), request),
}

handler = endpoint(lambda request: ROUTES[request.route](request), refuse)
