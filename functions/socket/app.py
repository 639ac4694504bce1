"""The WebSocket: $connect, $disconnect, and every message in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.ledger import wiring as core
from millrace.live import wiring
from millrace.runtime import bearer, observe
from millrace.runtime.snapstart import before_snapshot

before_snapshot(lambda: (bearer.tokens(), wiring.converse()))


def handler(event: Mapping[str, Any], _context: Any) -> dict[str, int]:
    context = event["requestContext"]
    connection, kind = str(context["connectionId"]), str(context["eventType"])
    try:
        if kind == "CONNECT":
            wiring.connections().open(connection, core.now_ms())
        elif kind == "DISCONNECT":
            wiring.subscriptions().remove(connection)
            wiring.connections().remove(connection)
        else:
            wiring.converse()(connection, str(event.get("body") or ""))
    except Exception:  # noqa: BLE001 - the last line of defence: the client hears of it and reconnects
        observe.logger().exception("unexpected_error", connection=connection, event_type=kind)
        if kind == "MESSAGE":
            wiring.converse().fail(connection)
        return {"statusCode": 500}
    observe.logger().info("socket", connection=connection, event_type=kind)
    return {"statusCode": 200}
