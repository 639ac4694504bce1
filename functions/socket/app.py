"""The WebSocket: $connect, $disconnect, every message in between; and later deadlines and rests of snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from millrace.ledger import wiring as core
from millrace.live import wiring
from millrace.live.adapters.deadlines import connection_of
from millrace.live.adapters.handovers import handover_of
from millrace.runtime import bearer, observe
from millrace.runtime.snapstart import before_snapshot

before_snapshot(lambda: (bearer.tokens(), wiring.converse()))


def handler(event: Mapping[str, Any], _context: Any) -> dict[str, Any]:
    if "Records" in event:
        return _later(event["Records"])
    context = event["requestContext"]
    connection, kind = str(context["connectionId"]), str(context["eventType"])
    try:
        if kind == "CONNECT":
            wiring.connections().open(connection, core.now_ms())
            wiring.deadlines().set(connection)
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


def _later(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One that fails is looked at again, and holds no other up."""
    failed = []
    for record in records:
        try:
            handover = handover_of(record["body"])
            if handover is not None:
                wiring.continue_snapshot()(handover)
                observe.logger().info("snapshot", connection=handover.connection, sent=handover.sent)
            else:
                connection = connection_of(record["body"])
                closed = wiring.close_strangers()(connection)
                observe.logger().info("deadline", connection=connection, closed=closed)
        except Exception:  # noqa: BLE001 - whatever it is, the queue brings it again, and gives up in the end
            observe.logger().exception("later_failed")
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}
