"""The routes of retention: how long events are kept, and what would go now. Nothing is pruned here."""

from __future__ import annotations

from collections.abc import Callable

from millrace.delivery import wiring as delivery
from millrace.lake import wiring
from millrace.lake.doors.retention import list_retention, plan_retention, read_retention, set_retention
from millrace.ledger import wiring as core
from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot

SCOPE = "/v1/retention/{contract}/{scope}"

before_snapshot(lambda: (bearer.tokens(), wiring.set_retention(), core.audited()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    f"PUT {SCOPE}": lambda request: set_retention(wiring.set_retention(), core.audited(), request),
    "GET /v1/retention": lambda request: list_retention(wiring.set_retention(), request),
    f"GET {SCOPE}/plan": lambda request: plan_retention(wiring.show_plan(delivery.held_by_targets().named), request),
    f"GET {SCOPE}": lambda request: read_retention(wiring.set_retention(), request),
}

handler = endpoint(lambda request: ROUTES[request.route](request))
