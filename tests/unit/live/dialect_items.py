"""One event as a client of each dialect sends it, and what becomes of it."""

from __future__ import annotations

from typing import Any

from millrace.ledger.domain.access import Identity
from millrace.live.domain.dialects import read

ME = Identity("C1", "default", frozenset({"P1"}), ("*",), frozenset({"producer"}), "default")
SNAKE_ITEM: dict[str, Any] = {
    "id": "e1",
    "partitions": ["a", "b"],
    "event": {"type": "folder.created", "payload": {"folder_id": "A"}},
}
CAMEL_ITEM: dict[str, Any] = {
    "id": "e1",
    "partitions": ["a", "b"],
    "projectId": "P1",
    "userId": "U1",
    "type": "folder.created",
    "payload": {"folder_id": "A", "clientId": "kept"},
    "meta": {"clientId": "C1", "clientTs": 1738451200000, "trace_id": "t"},
}
PROJECT_ITEM: dict[str, Any] = {
    "id": "e1",
    "partition": "a",
    "projectId": "P1",
    "userId": "U1",
    "type": "folder.created",
    "schemaVersion": 3,
    "payload": {"folder_id": "A", "clientId": "kept"},
    "meta": {"clientId": "C1", "clientTs": 1738451200000},
}
ITEMS = {"snake": SNAKE_ITEM, "camel": CAMEL_ITEM, "project": PROJECT_ITEM}


def read_item(dialect: str, item: Any) -> Any:
    envelope = "protocol_version" if dialect == "snake" else "protocolVersion"
    message = {"type": "submit_events", envelope: "1.0", "payload": {"events": [item]}}
    return read(dialect, message)["payload"]["events"][0]
