"""Break-glass grants of a runtime, the raw values kept under them, and the audit ledger."""

from __future__ import annotations

from collections.abc import Callable

from millrace.runtime import stream_wiring, wiring
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapshot import before_snapshot
from millrace.runtime.streams.doors import list_grants, make_grant, read_audit, read_raw, refuse, revoke_grant

DIAGNOSTICS = "/v1/runtimes/{runtime_id}/diagnostics"

before_snapshot(lambda: (wiring.tokens(), stream_wiring.diagnostics()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    f"POST {DIAGNOSTICS}/grants": make_grant,
    f"GET {DIAGNOSTICS}/grants": list_grants,
    f"DELETE {DIAGNOSTICS}/grants": revoke_grant,
    f"GET {DIAGNOSTICS}/{{grant_id}}": read_raw,
    "GET /v1/audit": read_audit,
}

handler = endpoint(lambda request: ROUTES[request.route](request), refuse)
