"""The routes by which operators look at ledgers, events, connections and what is wrong. They change nothing."""

from __future__ import annotations

from collections.abc import Callable

from millrace.operators.doors.ledgers import find_event, get_ledger, list_events, list_ledgers
from millrace.operators.doors.overview import list_connections, list_degraded, list_negotiations, show_overview
from millrace.operators.wiring import doors as wiring
from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot

LEDGER, RUNTIME = "/v1/ledgers/{contract}/{scope}", "/v1/runtimes/{runtime_id}"

before_snapshot(lambda: (bearer.tokens(), wiring.show_overview(), wiring.read_events()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    "GET /v1/ledgers": lambda request: list_ledgers(wiring.show_ledgers(), request),
    f"GET {LEDGER}": lambda request: get_ledger(wiring.show_ledgers(), request),
    f"GET {LEDGER}/events": lambda request: list_events(wiring.read_events(), request),
    f"GET {LEDGER}/event": lambda request: find_event(wiring.read_events(), request),
    "GET /v1/overview": lambda request: show_overview(wiring.show_overview(), request),
    "GET /v1/connections": lambda request: list_connections(wiring.show_connections(), request),
    f"GET {RUNTIME}/degraded": lambda request: list_degraded(wiring.show_degraded(), request),
    f"GET {RUNTIME}/negotiations": lambda request: list_negotiations(wiring.show_negotiations(), request),
}

handler = endpoint(lambda request: ROUTES[request.route](request))
