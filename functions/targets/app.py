"""The operator's doors: targets, their deliveries, another try by hand, and how delivery stands."""

from __future__ import annotations

from collections.abc import Callable

from millrace.runtime import delivery_wiring, wiring
from millrace.runtime.delivery.doors import (
    delete_target,
    drain_target,
    get_target,
    list_deliveries,
    list_targets,
    put_target,
    retry_delivery,
    status,
)
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.snapshot import before_snapshot

TARGET = "/v1/targets/{target_id}"

before_snapshot(
    lambda: (wiring.tokens(), delivery_wiring.targets(), delivery_wiring.inspect(), delivery_wiring.status())
)

ROUTES: dict[str, Callable[[Request], Response]] = {
    "GET /v1/targets": list_targets,
    f"PUT {TARGET}": put_target,
    f"GET {TARGET}": get_target,
    f"DELETE {TARGET}": delete_target,
    f"POST {TARGET}/drain": drain_target,
    f"GET {TARGET}/deliveries": list_deliveries,
    f"POST {TARGET}/deliveries/{{event_id}}/retry": retry_delivery,
    "GET /v1/delivery/status": status,
}

handler = endpoint(lambda request: ROUTES[request.route](request))
