"""The route of the catalog contract."""

from __future__ import annotations

from typing import Any

from infra.openapi.parts import JSON, PROBLEMS, TRACE, content, operation, parameter, problems, ref, response
from millrace.lake.doors import catalog
from millrace.runtime.requests import MAX_BATCH

PROTOBUF = catalog.PROTOBUF[0]
DOMAIN = parameter("domain", "path", {"type": "string", "minLength": 1, "maxLength": 128, "pattern": r"\S"})
EVENT = {
    "event_type": "materialization.completed",
    "event_version": 1,
    "occurred_at": "2026-02-16T10:00:00Z",
    "source": "warehouse",
    "payload": {"table": "orders", "rows": 17},
}


def paths() -> dict[str, Any]:
    body = content(JSON, {"oneOf": [ref("CatalogEvent"), ref("CatalogBatch")]})
    body[JSON]["examples"] = {"one": {"value": EVENT}, "many": {"value": {"events": [EVENT]}}}
    body[PROTOBUF] = {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "One `CatalogEvent` of catalog_event.proto, its payload an Any of google.protobuf.Struct.",
        }
    }
    answers = {"anyOf": [ref("CatalogCommitted"), ref("CatalogBatchAnswer")]}
    return {
        "/v1/catalog/{domain}/events": {
            "post": operation(
                "catalog",
                "recordCatalogEvents",
                "Record events of a domain, each once",
                f"One event, or `{{events: […]}}` of 1 to {MAX_BATCH}: then each has a result, and a bad one undoes "
                "nothing. An event is the same as another if it has the same key; with another type, version or "
                "payload under that key it is refused. Needs the role producer and the partition `catalog:{domain}`.",
                {"200": response("Done.", answers), **problems(*PROBLEMS, "409")},
                parameters=[DOMAIN, TRACE],
                body=body,
            )
        }
    }
