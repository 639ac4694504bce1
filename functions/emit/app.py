"""A runtime's way in: negotiate, then emit events into its streams."""

from __future__ import annotations

from collections.abc import Callable

from millrace.runtime import stream_wiring, wiring
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapshot import before_snapshot
from millrace.runtime.streams.doors import negotiate, refuse
from millrace.runtime.streams.emission import emit

before_snapshot(lambda: (wiring.tokens(), stream_wiring.negotiate(), stream_wiring.emit()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    "POST /v1/runtimes/{runtime_id}/negotiate": negotiate,
    "POST /v1/runtimes/{runtime_id}/streams/{stream_id}/events": emit,
}

handler = endpoint(lambda request: ROUTES[request.route](request), refuse)
