"""The routes of what operators set for ledgers: how long events are kept, and which shape a project takes."""

from __future__ import annotations

from collections.abc import Callable

from millrace.delivery import wiring as delivery
from millrace.lake import wiring
from millrace.lake.doors.retention import list_retention, plan_retention, read_retention, set_retention
from millrace.ledger import wiring as core
from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot
from millrace.sync import wiring as sync
from millrace.sync.doors.profiles import list_profiles, read_profile, set_profile

SCOPE, PROFILE = "/v1/retention/{contract}/{scope}", "/v1/projects/{project}/profile"

before_snapshot(lambda: (bearer.tokens(), wiring.set_retention(), core.audited()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    f"PUT {SCOPE}": lambda request: set_retention(wiring.set_retention(), core.audited(), request),
    "GET /v1/retention": lambda request: list_retention(wiring.set_retention(), request),
    f"GET {SCOPE}/plan": lambda request: plan_retention(wiring.show_plan(delivery.held_by_targets().named), request),
    f"GET {SCOPE}": lambda request: read_retention(wiring.set_retention(), request),
    f"PUT {PROFILE}": lambda request: set_profile(sync.set_profile(), core.audited(), request),
    f"GET {PROFILE}": lambda request: read_profile(sync.set_profile(), request),
    "GET /v1/profiles": lambda request: list_profiles(sync.set_profile(), request),
}

handler = endpoint(lambda request: ROUTES[request.route](request))
