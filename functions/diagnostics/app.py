"""Break-glass grants of a runtime, the raw values kept under them, and the audit ledger."""

from __future__ import annotations

from collections.abc import Callable

from millrace.ledger import wiring as core
from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot
from millrace.streams import wiring
from millrace.streams.doors.http import list_grants, make_grant, read_audit, read_raw, refuse, revoke_grant

DIAGNOSTICS = "/v1/runtimes/{runtime_id}/diagnostics"

before_snapshot(lambda: (bearer.tokens(), wiring.diagnostics()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    f"POST {DIAGNOSTICS}/grants": lambda request: make_grant(wiring.diagnostics(), request),
    f"GET {DIAGNOSTICS}/grants": lambda request: list_grants(wiring.diagnostics(), request),
    f"DELETE {DIAGNOSTICS}/grants": lambda request: revoke_grant(wiring.diagnostics(), request),
    f"GET {DIAGNOSTICS}/{{grant_id}}": lambda request: read_raw(wiring.diagnostics(), request),
    "GET /v1/audit": lambda request: read_audit(core.audit(), request),
}

handler = endpoint(lambda request: ROUTES[request.route](request), refuse)
