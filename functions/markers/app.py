"""A runtime's shared markers: create, list, move, delete, each change with the revision it expects."""

from __future__ import annotations

from collections.abc import Callable

from millrace.runtime import stream_wiring, wiring
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapshot import before_snapshot
from millrace.runtime.streams.doors import create_marker, delete_marker, list_markers, move_marker, refuse

MARKERS = "/v1/runtimes/{runtime_id}/markers"

before_snapshot(lambda: (wiring.tokens(), stream_wiring.markers()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    f"POST {MARKERS}": create_marker,
    f"GET {MARKERS}": list_markers,
    f"PATCH {MARKERS}/{{marker_id}}/position": move_marker,
    f"DELETE {MARKERS}/{{marker_id}}": delete_marker,
}

handler = endpoint(lambda request: ROUTES[request.route](request), refuse)
