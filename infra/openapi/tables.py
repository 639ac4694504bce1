"""The routes by which operators see tables and steer quarantine and registry."""

from __future__ import annotations

from typing import Any

from infra.openapi.ledgers import READING
from infra.openapi.parts import JSON, PROBLEMS, operation, parameter, problems, ref, response
from millrace.lake.doors.tables import MOST_AFTER_BYTES, MOST_LISTED

ID = parameter("id", "path", {"type": "string", "minLength": 1, "pattern": r"\S"}, "As the list shows it.")
REGISTRY = {"types": {"order.placed": {"versions": {"1": {}, "2": {"channel": "web"}}, "policy": "fallback"}}}
LINE = {
    "committed_at": 1770000000000,
    "ledger": "catalog#default#orders",
    "tenant": "default",
    "partitions": [],
    "client_id": "C1",
    "event_type": "order.placed",
    "event_version": 1,
    "idempotency_key": "orders/17",
    "occurred_at": "2026-02-16T10:00:00Z",
    "source": "warehouse",
    "sequence_position": 17,
    "payload": {"table": "orders"},
}


def paths() -> dict[str, Any]:
    return {
        "/v1/tables": {
            "get": _operation(
                "showTables",
                "See what is published and what waits",
                "Numbers of the whole hub are null for a token that does not run it. Needs the role operator.",
                "TablesModel",
            )
        },
        "/v1/quarantine": {
            "get": _operation(
                "listQuarantine",
                "List what compaction set aside",
                "Lines of ledgers that the token reaches. A page may be short. Needs the role operator.",
                "QuarantinePage",
                "409",
                parameters=[
                    parameter("reason", "query", {"type": "string"}, "Only entries with this reason."),
                    parameter("all", "query", {"type": "boolean", "default": False}, "Also what was driven again."),
                    parameter(
                        "after",
                        "query",
                        {"type": "string", "maxLength": MOST_AFTER_BYTES},
                        "The `next` of the page before.",
                    ),
                    parameter("max", "query", {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": 50}),
                ],
            )
        },
        "/v1/quarantine/redrive": {
            "post": _operation(
                "redriveQuarantine",
                "Put entries into the archive again as they are",
                "The next compaction takes them up. Sending it again is safe. Needs the role operator.",
                "RedrivenSome",
                "404",
                "409",
                body=("RedriveRequest", {"reason": "unknown_version"}),
            )
        },
        "/v1/quarantine/{id}": {
            "get": _operation(
                "showQuarantined",
                "Show an entry with its line",
                "Needs the role operator.",
                "QuarantinedLine",
                "404",
                parameters=[ID],
            )
        },
        "/v1/quarantine/{id}/repair": {
            "post": _operation(
                "repairQuarantined",
                "Put repaired lines in place of an entry",
                "Lines may name only ledgers that the token reaches. Needs the role operator.",
                "RedrivenLines",
                "404",
                parameters=[ID],
                body=("RepairRequest", {"lines": [LINE]}),
            )
        },
        "/v1/registry": {
            "get": _operation(
                "readRegistry",
                "See which versions of which types the tables take",
                "It holds for the whole hub. Needs the role operator.",
                "RegistryModel",
            ),
            "put": _operation(
                "putRegistry",
                "Replace the registry",
                "The next compaction goes by it. Needs an operator of the tenant `default` who sees every partition.",
                "RegistrySummary",
                body=("RegistryContent", REGISTRY),
            ),
        },
    }


def _operation(
    name: str,
    summary: str,
    description: str,
    answer: str,
    *more: str,
    parameters: list[dict[str, Any]] | None = None,
    body: tuple[str, Any] | None = None,
) -> dict[str, Any]:
    responses = {"200": response("Done.", ref(answer)), **problems(*(PROBLEMS if body else READING), *more)}
    sent = {JSON: {"schema": ref(body[0]), "example": body[1]}} if body else None
    return operation("tables", name, summary, description, responses, parameters=parameters, body=sent)
