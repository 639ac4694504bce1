"""The routes for operators of delivery: targets, their deliveries, another try by hand, and the status."""

from __future__ import annotations

from collections.abc import Callable

from millrace.delivery import wiring
from millrace.delivery.doors.http import (
    delete_target,
    drain_target,
    get_target,
    list_deliveries,
    patch_target,
    put_target,
    retry_delivery,
    status,
)
from millrace.delivery.doors.steering import (
    list_targets,
    pause_target,
    replay_range,
    resume_target,
    retry_many,
    show_attempts,
)
from millrace.ledger import wiring as core
from millrace.runtime import bearer
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapstart import before_snapshot

TARGET = "/v1/targets/{target_id}"

before_snapshot(lambda: (bearer.tokens(), wiring.targets(), wiring.inspect(), wiring.status(), core.audited()))

ROUTES: dict[str, Callable[[Request], Response]] = {
    "GET /v1/targets": lambda request: list_targets(wiring.targets(), wiring.inspect(), request),
    f"PUT {TARGET}": lambda request: put_target(wiring.targets(), core.audited(), request),
    f"PATCH {TARGET}": lambda request: patch_target(wiring.targets(), core.audited(), request),
    f"GET {TARGET}": lambda request: get_target(wiring.targets(), request),
    f"DELETE {TARGET}": lambda request: delete_target(wiring.targets(), core.audited(), request),
    f"POST {TARGET}/drain": lambda request: drain_target(wiring.targets(), core.audited(), request),
    f"GET {TARGET}/deliveries": lambda request: list_deliveries(wiring.inspect(), request),
    f"POST {TARGET}/deliveries/{{event_id}}/retry": lambda request: retry_delivery(
        wiring.inspect(), core.audited(), request
    ),
    f"GET {TARGET}/attempts": lambda request: show_attempts(wiring.inspect(), request),
    f"POST {TARGET}/retry": lambda request: retry_many(wiring.retry_many(), core.audited(), request),
    f"POST {TARGET}/replay": lambda request: replay_range(wiring.replay_range(), core.audited(), request),
    f"POST {TARGET}/pause": lambda request: pause_target(wiring.targets(), core.audited(), request),
    f"POST {TARGET}/resume": lambda request: resume_target(wiring.targets(), core.audited(), request),
    "GET /v1/delivery/status": lambda request: status(wiring.status(), request),
}

handler = endpoint(lambda request: ROUTES[request.route](request))
