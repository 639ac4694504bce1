"""A runtime's streams, read: polls with a cursor, and the status projection."""

from __future__ import annotations

from collections.abc import Callable

from millrace.runtime import stream_wiring, wiring
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapshot import before_snapshot
from millrace.runtime.streams.doors import poll, refuse, status

before_snapshot(lambda: (wiring.tokens(), stream_wiring.poll(), stream_wiring.runtime_status()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    "GET /v1/runtimes/{runtime_id}/streams/{stream_id}/events": poll,
    "GET /v1/runtimes/{runtime_id}/status": status,
}

handler = endpoint(lambda request: ROUTES[request.route](request), refuse)
