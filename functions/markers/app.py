"""A runtime's shared markers: create, list, move, delete, each change with the revision it expects."""

from __future__ import annotations

from collections.abc import Callable

from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot
from millrace.streams import wiring
from millrace.streams.doors.http import create_marker, delete_marker, list_markers, move_marker, refuse

MARKERS = "/v1/runtimes/{runtime_id}/markers"

before_snapshot(lambda: (bearer.tokens(), wiring.markers()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    f"POST {MARKERS}": lambda request: create_marker(wiring.markers(), request),
    f"GET {MARKERS}": lambda request: list_markers(wiring.markers(), request),
    f"PATCH {MARKERS}/{{marker_id}}/position": lambda request: move_marker(wiring.markers(), request),
    f"DELETE {MARKERS}/{{marker_id}}": lambda request: delete_marker(wiring.markers(), request),
}

handler = endpoint(lambda request: ROUTES[request.route](request), refuse)
