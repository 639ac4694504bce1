"""The routes by which operators look at ledgers and events."""

from __future__ import annotations

from typing import Any

from infra.openapi.parts import PROBLEMS, operation, parameter, problems, ref, response
from millrace.lake.domain.retention_rules import CONTRACTS, MAX_SCOPE_BYTES
from millrace.operators.application.read_events import MAX_ID_BYTES
from millrace.operators.doors.ledgers import MAX_NUMBER, MOST_EVENTS, MOST_LEDGERS

CONTRACT = {"type": "string", "enum": list(CONTRACTS)}
PLACE = [
    parameter("contract", "path", CONTRACT),
    parameter(
        "scope",
        "path",
        {"type": "string", "minLength": 1, "maxLength": MAX_SCOPE_BYTES, "pattern": r"\S"},
        "A project, session, domain or team; of a stream `runtime_id:stream_id`.",
    ),
]
NUMBER = {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER}
READING = [status for status in PROBLEMS if status != "413"]
LEDGER = "/v1/ledgers/{contract}/{scope}"


def paths() -> dict[str, Any]:
    return {
        "/v1/ledgers": {
            "get": _operation(
                "listLedgers",
                "List ledgers and how their readers stand",
                "Those of a contract that the token reaches, in order of names. Needs the role operator.",
                "LedgerPage",
                [
                    parameter("contract", "query", CONTRACT) | {"required": True},
                    parameter("prefix", "query", {"type": "string"}, "The beginning of a scope."),
                    parameter("after", "query", {"type": "string"}, "The `next` of the page before."),
                    _most(MOST_LEDGERS, 50),
                ],
            )
        },
        LEDGER: {
            "get": _operation(
                "getLedger",
                "See how one ledger and its readers stand",
                "Head, floor, and the position and lag of every reader and target. Needs the role operator.",
                "LedgerStand",
                PLACE,
                "404",
            )
        },
        f"{LEDGER}/events": {
            "get": _operation(
                "listLedgerEvents",
                "Read a ledger by position or time",
                "One answer looks at a bounded number of positions. Needs the role operator.",
                "EventPage",
                [
                    *PLACE,
                    parameter("after", "query", NUMBER, "The position before the first that is wanted."),
                    parameter("at_ms", "query", NUMBER, "Instead: begin with the first event of this time or later."),
                    parameter("partition", "query", {"type": "string"}, "Only events of this partition."),
                    parameter("type", "query", {"type": "string"}, "Only events of this type."),
                    _most(MOST_EVENTS, 100),
                ],
                "404",
            )
        },
        f"{LEDGER}/event": {
            "get": _operation(
                "findLedgerEvent",
                "Find an event by its id, and which target has it",
                "With attempts, times and the last error at each target. Needs the role operator.",
                "FoundEvent",
                [
                    *PLACE,
                    parameter("id", "query", {"type": "string", "minLength": 1, "maxLength": MAX_ID_BYTES})
                    | {"required": True},
                ],
                "404",
            )
        },
    }


def _most(maximum: int, default: int) -> dict[str, Any]:
    return parameter("max", "query", {"type": "integer", "minimum": 1, "maximum": maximum, "default": default})


def _operation(
    name: str, summary: str, description: str, answer: str, parameters: list[dict[str, Any]], *more: str
) -> dict[str, Any]:
    responses = {"200": response("Here it is.", ref(answer)), **problems(*READING, *more)}
    return operation("operators", name, summary, description, responses, parameters=parameters)
