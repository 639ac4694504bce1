"""The routes by which operators see how the whole hub stands."""

from __future__ import annotations

from typing import Any

from infra.openapi.ledgers import READING
from infra.openapi.parts import operation, parameter, problems, ref, response
from millrace.operators.doors.overview import MOST_AFTER_BYTES, MOST_LISTED

AFTER = parameter("after", "query", {"type": "string", "maxLength": MOST_AFTER_BYTES}, "The `next` of the page before.")
MOST = parameter("max", "query", {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": MOST_LISTED})
RUNTIME = parameter("runtime_id", "path", {"type": "string", "minLength": 1, "pattern": r"\S"})
SHOWN: dict[str, Any] = {
    "looked_at": 40,
    "more": False,
    "stages": {
        "fan_out": {"events_read": 118, "gaps": 0, "worst_lag_seconds": 90.0, "lag_events": 2, "ledgers_behind": 1},
        "index": {"events_read": 120, "gaps": 0, "worst_lag_seconds": 0, "lag_events": 0, "ledgers_behind": 0},
        "archive": {"events_read": 100, "gaps": 0, "worst_lag_seconds": 41.0, "lag_events": 20, "ledgers_behind": 1},
        "targets": {"events_read": 120, "gaps": 0, "worst_lag_seconds": 0, "lag_events": 0, "ledgers_behind": 0},
    },
    "events_per_minute": {
        "minutes": [{"minute_ms": 1770000000000, "events": 12}],
        "by_contract": {"sync": [{"minute_ms": 1770000000000, "events": 12}]},
        "truncated": False,
    },
    "targets": {"well": 2, "paused": 1, "blocked": 0},
    "connections": 3,
    "subscriptions": 5,
    "degraded": 0,
    "problems": [
        {
            "severity": "warning",
            "what": "fan_out is 90 s behind in sync demo.",
            "where": "sync/demo",
            "help": "make logs",
        }
    ],
}


def paths() -> dict[str, Any]:
    return {
        "/v1/overview": {
            "get": _operation(
                "getOverview",
                "See how the hub stands and what is wrong",
                "Of each contract the first ledgers by name are looked at. Needs the role operator.",
                "HubOverview",
                None,
                SHOWN,
            )
        },
        "/v1/connections": {
            "get": _operation(
                "listConnections",
                "List open connections and their subscriptions",
                "Those to projects that the token names. A page may be short. Needs the role operator.",
                "ConnectionPage",
                [parameter("project", "query", {"type": "string"}, "Only connections to this project."), AFTER, MOST],
            )
        },
        "/v1/runtimes/{runtime_id}/degraded": {
            "get": _operation(
                "listDegraded",
                "List subscriptions that lost history, and gaps",
                "Of the streams of a runtime, in order of their names. Needs the role operator.",
                "DegradedPage",
                [RUNTIME, AFTER, MOST],
            )
        },
        "/v1/runtimes/{runtime_id}/negotiations": {
            "get": _operation(
                "listNegotiations",
                "List what each client of a runtime has negotiated",
                "In order of the clients' names. Needs the role operator.",
                "NegotiationPage",
                [RUNTIME, AFTER, MOST],
            )
        },
    }


def _operation(
    name: str,
    summary: str,
    description: str,
    answer: str,
    parameters: list[dict[str, Any]] | None,
    example: dict[str, Any] | None = None,
) -> dict[str, Any]:
    shown = response("Here it is.", ref(answer))
    if example:
        shown["content"]["application/json"]["example"] = example
    return operation(
        "operators", name, summary, description, {"200": shown, **problems(*READING)}, parameters=parameters
    )
