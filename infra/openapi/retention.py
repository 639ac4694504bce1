"""The routes of retention."""

from __future__ import annotations

from typing import Any

from infra.openapi.parts import JSON, PROBLEMS, content, operation, parameter, problems, ref, response
from millrace.lake.domain.retention_rules import CONTRACTS, MAX_SCOPE_BYTES

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
        }
    }
