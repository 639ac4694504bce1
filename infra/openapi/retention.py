"""The routes of retention."""

from __future__ import annotations

from typing import Any

from infra.openapi.parts import JSON, PROBLEMS, content, operation, parameter, problems, ref, response
from millrace.lake.domain.retention_rules import CONTRACTS, MAX_SCOPE_BYTES
from millrace.lake.doors.retention import MOST_LISTED

CHANGE = {"max_age_days": 90}
PLACE = [
    parameter("contract", "path", {"type": "string", "enum": list(CONTRACTS)}),
    parameter(
        "scope",
        "path",
        {"type": "string", "minLength": 1, "maxLength": MAX_SCOPE_BYTES, "pattern": r"\S"},
        "A project, session, domain or team; of a stream `runtime_id:stream_id`; all that start so, with a `*` at "
        "its end.",
    ),
]


def paths() -> dict[str, Any]:
    body = content(JSON, ref("RetentionChange"))
    body[JSON]["example"] = CHANGE
    done = {"200": response("What holds for the scope now.", ref("RetentionAnswer"))}
    reading = [status for status in PROBLEMS if status != "413"]
    return {
        "/v1/retention": {
            "get": operation(
                "retention",
                "listRetention",
                "List what is needed no longer",
                "One rule for each scope and partition that the token reaches. A page may be short before the end. "
                "Needs the role operator.",
                {"200": response("Some of the rules.", ref("RetentionList")), **problems(*reading)},
                parameters=[
                    parameter("contract", "query", {"type": "string", "enum": list(CONTRACTS)}),
                    parameter("after", "query", {"type": "string"}, "The `next_after` of the page before."),
                    parameter(
                        "max", "query", {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": 100}
                    ),
                ],
            )
        },
        "/v1/retention/{contract}/{scope}/plan": {
            "get": operation(
                "retention",
                "planRetention",
                "See what would go now",
                "Of one ledger, and who holds back the rest, at which position. Nothing is pruned. A run of retention "
                "also waits for compaction, which is not asked here. Needs the role operator; of a project also the "
                "partition `*`.",
                {"200": response("What would go.", ref("RetentionPlan")), **problems(*reading)},
                parameters=PLACE,
            )
        },
        "/v1/retention/{contract}/{scope}": {
            "put": operation(
                "retention",
                "setRetention",
                "Say what is needed no longer",
                "Prunes nothing by itself. A run of retention prunes an event when every one of its partitions has "
                "advanced past it and nobody still has to read it. Needs the role operator.",
                {**done, **problems(*PROBLEMS, "409")},
                parameters=PLACE,
                body=body,
            ),
            "get": operation(
                "retention",
                "readRetention",
                "Read what is needed no longer",
                "The rules of this very scope; wider ones (`*`) are read under their own name.",
                {**done, **problems(*reading)},
                parameters=PLACE,
            ),
        },
    }
