"""The break-glass routes: grants, the raw values they kept, and the audit of both."""

from __future__ import annotations

from typing import Any

from infra.openapi.parts import JSON, operation, parameter, ref, response
from infra.openapi.sdk_errors import refusals
from infra.openapi.streams import NAME, RUNTIME, RUNTIMES
from millrace.streams.domain import errors
from millrace.streams.domain.errors import SdkError
from millrace.streams.doors.http import MAX_NUMBER

GRANTS = f"{RUNTIMES}/diagnostics/grants"
ROLE = "Needs the role operator, and is audited."
REQUEST = {
    "reason": "INC-482: messages to one peer are lost",
    "ttl_s": 3600,
    "scope": {"streams": ["delivery"], "fields": ["peer_id"]},
}
ENDING = parameter("grant_id", "query", NAME, "The grant to end; it must be given.") | {"required": True}


def paths() -> dict[str, Any]:
    return {
        GRANTS: {
            "post": _operation(
                "createGrant",
                "Keep raw sensitive values for a while",
                "While the grant is active, the raw values of sensitive fields in its scope are kept, encrypted, "
                f"beside the events emitted from now on; secret ones never. {ROLE}",
                "BreakGlassGrant",
                errors.BatchTooLarge,
                parameters=[RUNTIME],
                body={JSON: {"schema": ref("GrantRequest"), "example": REQUEST}},
            ),
            "get": _operation(
                "listGrants",
                "List a runtime's grants",
                "Active ones and those that ended. Needs the role operator.",
                "GrantList",
                parameters=[RUNTIME],
            ),
            "delete": _operation(
                "revokeGrant",
                "End a grant now",
                f"What it kept cannot be read from then on. {ROLE}",
                "BreakGlassGrant",
                errors.Absent,
                parameters=[RUNTIME, ENDING],
            ),
        },
        f"{RUNTIMES}/diagnostics/{{grant_id}}": {
            "get": _operation(
                "readDiagnostics",
                "Read the raw values a grant kept",
                f"Only while the grant is active. {ROLE}",
                "DiagnosticsPage",
                errors.Absent,
                errors.GrantEnded,
                parameters=[
                    RUNTIME,
                    parameter("grant_id", "path", NAME),
                    parameter("after", "query", {"type": "string", "minLength": 1}, "The `next_after` before."),
                    _most(100, 50),
                ],
            )
        },
        "/v1/audit": {
            "get": _operation(
                "readAudit",
                "Read what operators did",
                "Every change by an operator with its outcome, every negotiation, every grant, its end and every read "
                "of raw values of the tenant. Needs the role operator.",
                "AuditPage",
                parameters=[
                    parameter(
                        "after",
                        "query",
                        {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER},
                        "Read after this position, with the order `oldest`.",
                    ),
                    parameter(
                        "before",
                        "query",
                        {"type": "integer", "minimum": 1, "maximum": MAX_NUMBER},
                        "Read below this position, with the order `newest`.",
                    ),
                    parameter("order", "query", {"enum": ["oldest", "newest"], "default": "oldest"}),
                    parameter("action", "query", {"type": "string"}, "Only this action."),
                    parameter("client", "query", {"type": "string"}, "Only what this client did."),
                    parameter(
                        "since_ms",
                        "query",
                        {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER},
                        "Only what was done at this time or later.",
                    ),
                    _most(500, 100),
                ],
            )
        },
    }


def _most(maximum: int, default: int) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": 1, "maximum": maximum, "default": default}
    return parameter("max", "query", schema, "Entries at most.")


def _operation(
    name: str, summary: str, description: str, answer: str, *kinds: type[SdkError], **request: Any
) -> dict[str, Any]:
    responses = {"200": response("Done.", ref(answer)), **refusals(*kinds)}
    return operation("diagnostics", name, summary, description, responses, **request)
