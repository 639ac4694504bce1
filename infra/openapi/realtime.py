"""The routes of the realtime contract."""

from __future__ import annotations

from typing import Any

from infra.limits import TEXTS
from infra.openapi.parts import JSON, TRACE, operation, parameter, problems, ref, response
from infra.realtime_docs import example
from millrace.ledger.domain.instants import UTC_DATE_TIME
from millrace.ledger.domain.naming import MAX_NAME_BYTES
from millrace.realtime.doors.registry import MAX_BYTES, TYPES
from millrace.realtime.doors.requests import LIMIT_DEFAULT, LIMIT_MAX, MAX_SEQUENCE

SESSIONS = "/v1/realtime/sessions/{sessionId}"
SESSION = parameter("sessionId", "path", {"type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES})
REPLAY = [
    parameter(
        "afterSequence",
        "query",
        {"type": "integer", "minimum": 0, "maximum": MAX_SEQUENCE},
        "In the order of the log, after this place. It goes before every other way to say where.",
    ),
    parameter(
        "consumerId",
        "query",
        {"type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES},
        "After this consumer's checkpoint.",
    ),
    parameter(
        "afterTs",
        "query",
        {"type": "string", "pattern": f"^{UTC_DATE_TIME}$"},
        "In the order of (`ts`, `eventId`), after this place; with `afterEventId`.",
    ),
    parameter("afterEventId", "query", {"type": "string", "maxLength": MAX_BYTES["eventId"]}, "With `afterTs`."),
    parameter(
        "limit",
        "query",
        {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
        "Events at most.",
    ),
]
REBUILD = parameter("rebuild", "query", {"type": "boolean"}, "Read the whole log again; needs the role operator.")
TRANSCRIPT = [
    parameter(
        "afterStartMs",
        "query",
        {"type": "integer", "minimum": 0},
        "After this place in the transcript; with `afterUtteranceId`.",
    ),
    parameter("afterUtteranceId", "query", {"type": "string"}, "With `afterStartMs`."),
    REBUILD,
]

ERROR = ref("RealtimeError")
STORAGE = ("429", "500", "503")
REFUSED = {
    "400": response("The request breaks a rule; each of `errors` says where. Nothing was stored.", ERROR),
    "409": response("The `eventId` is used by another event of the tenant. Nothing was stored.", ERROR),
    "413": response(f"The event is over {TEXTS['realtime-event']}, or the body over {TEXTS['http-body']}.", ERROR),
}
FORBIDDEN = "The token does not reach this session or role."


def paths() -> dict[str, Any]:
    return {
        "/v1/realtime/events": {"post": _publish()},
        f"{SESSIONS}/events": {
            "get": _read(
                "replayEvents",
                "Read a session's events",
                "From a sequence, a consumer's checkpoint or a time on; with none of them, in the order of "
                "(`ts`, `eventId`) from the start. Page on while `hasMore`.",
                "ReplayAnswer",
                [SESSION, *REPLAY],
            )
        },
        f"{SESSIONS}/checkpoint": {"post": _checkpoint()},
        f"{SESSIONS}/transcript": {
            "get": _read(
                "readTranscript",
                "Read what was said in a session",
                "The best text of each utterance up to the newest event, pruned or not. Page on while `hasMore`.",
                "TranscriptAnswer",
                [SESSION, *TRANSCRIPT],
            )
        },
        "/v1/realtime/metrics": {
            "get": operation(
                "realtime",
                "realtimeMetrics",
                "Count the tenant's events",
                "What was stored, refused and repeated.",
                {"200": response("Counted.", ref("RealtimeMetricsAnswer")), **problems("401"), **_forbidden()}
                | problems(*STORAGE),
            )
        },
        "/v1/realtime/schemas/{type}": {"get": _schema()},
    }


def _forbidden() -> dict[str, Any]:
    return {"403": response(FORBIDDEN, ref("Problem"))}


def _publish() -> dict[str, Any]:
    either = [ref("RealtimeEvent"), ref("RealtimeBatch")]
    examples = {
        "one": {"summary": "One event", "value": example("transcript.final")},
        "batch": {
            "summary": "A batch",
            "value": {"events": [example("call.started"), example("transcript.partial"), example("usage.tick")]},
        },
    }
    stored = {"anyOf": [ref("PublishAnswer"), ref("PublishBatchAnswer")]}
    return operation(
        "realtime",
        "publishEvents",
        "Store one event or many, each exactly once",
        "The same event again answers `deduped` with what is stored. A batch is answered 200 with one result per "
        "event; a single event that is refused has the status of its error.",
        {
            "200": response("Stored, now or before; of a batch, see each result.", stored),
            "400": REFUSED["400"],
            **problems("401"),
            "403": response(FORBIDDEN, {"anyOf": [ERROR, ref("Problem")]}),
            "409": REFUSED["409"],
            "413": REFUSED["413"],
            **problems(*STORAGE),
        },
        parameters=[TRACE],
        body={JSON: {"schema": {"anyOf": either}, "examples": examples}},
    )


def _read(name: str, summary: str, description: str, answer: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    responses = {
        "200": response("Here it is.", ref(answer)),
        "400": REFUSED["400"],
        **problems("401"),
        **_forbidden(),
        **problems(*STORAGE),
    }
    return operation("realtime", name, summary, description, responses, parameters=parameters)


def _checkpoint() -> dict[str, Any]:
    last = example("transcript.final")
    value = {
        "consumerId": "reader_1",
        "watermarkTs": last["ts"],
        "watermarkEventId": last["eventId"],
        "watermarkSequence": 1,
    }
    return operation(
        "realtime",
        "checkpoint",
        "Keep how far a consumer is",
        "A replay with this `consumerId` goes on after it. It moves forward only.",
        {
            "200": response("Kept, unless it would have gone back.", ref("CheckpointAnswer")),
            "400": REFUSED["400"],
            **problems("401"),
            **_forbidden(),
            "413": response(f"The body is over {TEXTS['http-body']}.", ERROR),
            **problems(*STORAGE),
        },
        parameters=[SESSION],
        body={JSON: {"schema": ref("CheckpointRequest"), "example": value}},
    )


def _schema() -> dict[str, Any]:
    return operation(
        "realtime",
        "readSchema",
        "Read the JSON Schema of a type of event",
        "For the whole event, with its payload.",
        {
            "200": response("Here it is.", {"type": "object"}, "application/schema+json"),
            **problems("401"),
            "404": response("No such type; the message lists those there are.", ref("Problem")),
            **problems(*STORAGE),
        },
        parameters=[parameter("type", "path", {"type": "string", "enum": list(TYPES)})],
    )
