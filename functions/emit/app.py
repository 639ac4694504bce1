"""Takes events of a runtime: it negotiates first, then emits events into its streams."""

from __future__ import annotations

from collections.abc import Callable

from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot
from millrace.streams import wiring
from millrace.streams.doors.emission import emit
from millrace.streams.doors.http import effective, negotiate, refuse

before_snapshot(lambda: (bearer.tokens(), wiring.negotiate(), wiring.emit()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    "POST /v1/runtimes/{runtime_id}/negotiate": lambda request: negotiate(wiring.negotiate(), request),
    "GET /v1/runtimes/{runtime_id}/negotiate": lambda request: effective(wiring.negotiate(), request),
    "POST /v1/runtimes/{runtime_id}/streams/{stream_id}/events": lambda request: emit(wiring.emit(), request),
}

handler = endpoint(lambda request: ROUTES[request.route](request), refuse)
