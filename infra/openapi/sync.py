"""The routes of the sync contract."""

from __future__ import annotations

from typing import Any

from infra.limits import TEXTS
from infra.openapi.parts import JSON, PROBLEMS, TRACE, content, operation, parameter, problems, ref, response
from millrace.ledger.domain.naming import MAX_NAME_BYTES

PROJECT = parameter("project", "path", {"type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES})

ITEM = {
    "id": "order-17-paid",
    "partitions": ["orders"],
    "event": {"type": "order.paid", "payload": {"order": 17}},
}


def paths() -> dict[str, Any]:
    return {
        "/v1/projects/{project}/submit_events": {
            "post": _operation(
                "submitEvents",
                "Commit events, each exactly once",
                "Items run in order and do not undo each other. The same id with the same content answers its "
                "first result; with other content it is rejected.",
                "SubmitRequest",
                "SubmitAnswer",
                {"events": [ITEM]},
                TRACE,
            )
        },
        "/v1/projects/{project}/sync": {
            "post": _operation(
                "sync",
                "Read events from any position",
                "Every event of the partitions after `since_committed_id`, in order, up to a watermark that stays "
                f"fixed for the cycle. A page holds at most `limit` events and {TEXTS['http-page']}.",
                "SyncRequest",
                "SyncAnswer",
                {"partitions": ["orders"], "since_committed_id": 0},
            )
        },
    }


def _operation(
    name: str, summary: str, description: str, request: str, answer: str, example: Any, *more: dict[str, Any]
) -> dict[str, Any]:
    responses = {"200": response("Done.", ref(answer)), **problems(*PROBLEMS)}
    body = content(JSON, ref(request))
    body[JSON]["example"] = example
    return operation("sync", name, summary, description, responses, parameters=[PROJECT, *more], body=body)
