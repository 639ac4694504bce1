"""The routes of the delivery contract: batches in, and the operator's doors to targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infra.openapi.parts import JSON, PROBLEMS, TRACE, content, operation, parameter, problems, ref, response
from millrace.delivery.domain.states import Status
from millrace.delivery.doors.http import MOST_LISTED

TARGETS = "/v1/targets"
ONE = f"{TARGETS}/{{target_id}}"
TARGET = parameter("target_id", "path", {"type": "string", "minLength": 1, "maxLength": 128})
EVENT = parameter("event_id", "path", {"type": "string", "minLength": 1}, "As the target knows it.")
ROLE = "Needs the role operator."
BATCH = {"events": [{"event_id": "build-17-done", "event_type": "build.done", "payload": {"build": 17}}]}
WEBHOOK = {
    "type": "external",
    "mode": "webhook",
    "url": "https://hooks.example.com/millrace",
    "signing_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "sources": [{"contract": "sync", "scope": "demo"}],
    "families": ["sync.order."],
}


def paths() -> dict[str, Any]:
    return {
        "/api/v1/events/batch/": {
            "post": _operation(
                "ingestBatch",
                "Take in a batch of events",
                "1 to 1000 events, plain or gzipped, into the journal of the token's team. Events do not hurt their "
                "neighbours. The answer is 400, with the reason of each event under `details`, only if no event at all "
                "can be kept. On AWS, gzipped `application/json` goes to the output `BatchUrl`. The token must reach "
                "`team:{slug}`.",
                "BatchAnswer",
                "404",
                "415",
                parameters=[TRACE],
                body=(ref("BatchRequest"), BATCH),
                refusals={"400": "BatchRefused"},
                refusal="BatchProblem",
            )
        },
        TARGETS: {
            "get": _operation(
                "listTargets",
                "List the targets",
                f"Of the tenant. {ROLE}",
                "TargetList",
                parameters=[
                    parameter(
                        "counts",
                        "query",
                        {"type": "boolean", "default": False},
                        "Also count the deliveries that are not done, by state.",
                    )
                ],
            )
        },
        ONE: {
            "put": _operation(
                "putTarget",
                "Make or change a target",
                "A secret that is left out stays as it is. A target that was paused goes on, and looks for all that "
                f"it has missed. {ROLE}",
                "TargetModel",
                "409",
                parameters=[TARGET],
                body=(ref("TargetRequest"), WEBHOOK),
            ),
            "patch": _operation(
                "patchTarget",
                "Change single fields of a target",
                "What is left out stays as it is. A target that the hub paused goes on only if `paused` is given as "
                f"false. {ROLE}",
                "TargetModel",
                "404",
                "409",
                parameters=[TARGET],
                body=(ref("TargetPatch"), {"paused": True}),
            ),
            "get": _operation(
                "getTarget", "See a target", f"Without its secrets. {ROLE}", "TargetModel", "404", parameters=[TARGET]
            ),
            "delete": _operation(
                "deleteTarget",
                "Delete a target",
                "It holds back retention no more. What it was given stays known: made again under the same id, it "
                f"goes on where it was. {ROLE}",
                "TargetDeleted",
                parameters=[TARGET],
            ),
        },
        f"{ONE}/drain": {
            "post": _operation(
                "drainTarget",
                "Deliver now what is due",
                f"Looks for ledgers in which the target is behind, too. {ROLE}",
                "DrainAsked",
                "404",
                "409",
                parameters=[TARGET],
            )
        },
        f"{ONE}/deliveries": {
            "get": _operation(
                "listDeliveries",
                "See what became of each event",
                ROLE,
                "DeliveryPage",
                "404",
                parameters=[
                    TARGET,
                    parameter("status", "query", {"enum": [status.value for status in Status]}),
                    parameter("after", "query", {"type": "string"}, "The `next_after` of the page before."),
                    parameter(
                        "max", "query", {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": 100}
                    ),
                ],
            )
        },
        f"{ONE}/deliveries/{{event_id}}/retry": {
            "post": _operation(
                "retryDelivery",
                "Try an event again, by hand",
                f"One that was given up, or that waits. {ROLE}",
                "Retried",
                "404",
                "409",
                parameters=[TARGET, EVENT],
            )
        },
        f"{ONE}/attempts": {
            "get": _operation(
                "showAttempts",
                "See the last attempts of one delivery",
                f"The event id travels in the query, for it may hold any character. {ROLE}",
                "AttemptsModel",
                "404",
                parameters=[
                    TARGET,
                    {
                        **parameter("event_id", "query", {"type": "string", "minLength": 1}, "As the target knows it."),
                        "required": True,
                    },
                ],
            )
        },
        f"{ONE}/retry": {
            "post": _operation(
                "retryMany",
                "Try many events again, by hand",
                "A bounded amount of work: while `next` is not null, send the same body with `after` set to it. "
                f"Sending it again is safe. {ROLE}",
                "RetriedMany",
                "404",
                parameters=[TARGET],
                body=(ref("RetryManyRequest"), {"status": "terminal_failed", "families": ["build."]}),
            )
        },
        f"{ONE}/replay": {
            "post": _operation(
                "replayRange",
                "Send a range of events again, by hand",
                "Even what the target has; receivers answer `duplicate` to what they know. A bounded amount of work: "
                f"while `next` is not null, send the same body with `from_position` set to it. {ROLE}",
                "ReplayedRange",
                "404",
                parameters=[TARGET],
                body=(
                    ref("RangeReplayRequest"),
                    {"contract": "sync", "scope": "demo", "from_position": 1, "to_position": 5000},
                ),
            )
        },
        f"{ONE}/pause": {
            "post": _operation(
                "pauseTarget",
                "Pause a target",
                f"It gets nothing until it is resumed; retention keeps what it has not got. {ROLE}",
                "TargetModel",
                "404",
                "409",
                parameters=[TARGET],
            )
        },
        f"{ONE}/resume": {
            "post": _operation(
                "resumeTarget",
                "Let a paused target go on",
                f"It gets all that it has missed, whoever paused it. {ROLE}",
                "TargetModel",
                "404",
                "409",
                parameters=[TARGET],
            )
        },
        "/v1/delivery/status": {
            "get": _operation(
                "deliveryStatus",
                "See how delivery stands",
                f"Every target, what it has, what waits and what was given up. {ROLE}",
                "DeliveryStatusModel",
            )
        },
    }


def _operation(
    name: str,
    summary: str,
    description: str,
    answer: str,
    *statuses: str,
    parameters: list[dict[str, Any]] | None = None,
    body: tuple[dict[str, Any], Any] | None = None,
    refusals: Mapping[str, str] | None = None,
    refusal: str = "Problem",
) -> dict[str, Any]:
    """`refusals` names the bodies of single statuses, `refusal` that of all others."""
    refused = problems(*sorted({*PROBLEMS, *statuses}))
    for status, told in refused.items():
        told["content"] = content(JSON, ref((refusals or {}).get(status, refusal)))
    responses = {"200": response("Done.", ref(answer)), **refused}
    sent = {JSON: {"schema": body[0], "example": body[1]}} if body else None
    return operation("delivery", name, summary, description, responses, parameters=parameters, body=sent)
