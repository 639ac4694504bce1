"""The routes of tables, quarantine and registry: what compaction made, what it set aside, and what it takes."""

from __future__ import annotations

from collections.abc import Callable

from millrace.lake import wiring
from millrace.lake.doors.tables import (
    list_quarantine,
    put_registry,
    read_registry,
    redrive_quarantine,
    repair_quarantined,
    show_quarantined,
    show_tables,
)
from millrace.ledger import wiring as core
from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot

QUARANTINE, REGISTRY = "/v1/quarantine", "/v1/registry"

before_snapshot(lambda: (bearer.tokens(), wiring.show_tables(), wiring.steer_quarantine(), core.audited()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    "GET /v1/tables": lambda request: show_tables(wiring.show_tables(), request),
    f"GET {QUARANTINE}": lambda request: list_quarantine(wiring.steer_quarantine(), request),
    f"GET {QUARANTINE}/{{id}}": lambda request: show_quarantined(wiring.steer_quarantine(), request),
    f"POST {QUARANTINE}/redrive": lambda request: redrive_quarantine(
        wiring.steer_quarantine(), core.audited(), request
    ),
    f"POST {QUARANTINE}/{{id}}/repair": lambda request: repair_quarantined(
        wiring.steer_quarantine(), core.audited(), request
    ),
    f"GET {REGISTRY}": lambda request: read_registry(wiring.steer_registry(), request),
    f"PUT {REGISTRY}": lambda request: put_registry(wiring.steer_registry(), core.audited(), request),
}

handler = endpoint(lambda request: ROUTES[request.route](request))
