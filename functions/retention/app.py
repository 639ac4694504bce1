"""PUT and GET /v1/retention/{contract}/{scope}: how long events are kept. Nothing is pruned here."""

from __future__ import annotations

from collections.abc import Callable

from millrace.lake import wiring
from millrace.lake.doors.retention import read_retention, set_retention
from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot

SCOPE = "/v1/retention/{contract}/{scope}"

before_snapshot(lambda: (bearer.tokens(), wiring.set_retention()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    f"PUT {SCOPE}": lambda request: set_retention(wiring.set_retention(), request),
    f"GET {SCOPE}": lambda request: read_retention(wiring.set_retention(), request),
}

handler = endpoint(lambda request: ROUTES[request.route](request))
