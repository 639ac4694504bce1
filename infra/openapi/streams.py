"""The routes of the streams contract: negotiate, emit, poll and status."""

from __future__ import annotations

from typing import Any

from infra.openapi.parts import JSON, operation, parameter, ref, response
from infra.openapi.sdk_errors import refusals
from millrace.ledger.domain.naming import MAX_NAME_BYTES
from millrace.streams.domain import errors
from millrace.streams.domain.cursor import MAX_CURSOR_BYTES
from millrace.streams.domain.negotiate import CONTRACT_VERSION, RECEIPT_TERMINALITY

NAME = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES}
RUNTIMES = "/v1/runtimes/{runtime_id}"
RUNTIME = parameter("runtime_id", "path", NAME, "The token must reach `runtime:{runtime_id}`.")
STREAM = parameter("stream_id", "path", NAME, "Only the marker routes write to the stream `markers`.")
CURSOR = parameter(
    "cursor",
    "query",
    {"type": "string", "minLength": 1, "maxLength": MAX_CURSOR_BYTES},
    "The `next_cursor` of the poll before. Without one, a new subscription starts at the oldest event retained.",
)
MAX = parameter(
    "max",
    "query",
    {"type": "integer", "minimum": 1, "maximum": 10_000},
    "Events at most; without it, and at most, the runtime's `max_poll_events`.",
)
REBUILD = parameter("rebuild", "query", {"type": "boolean"}, "Fold the whole streams again; needs the role operator.")

EVENT = {
    "event_id": "evt_1",
    "contract_version": CONTRACT_VERSION,
    "ts_ms": 1_771_236_000_000,
    "event_type": "DeliveryStateTransition",
    "severity": "info",
    "source_component": "router",
    "message_id": "msg_1",
    "payload": {"to": "queued"},
}
EXTENSION = {
    "event_id": "evt_2",
    "contract_version": CONTRACT_VERSION,
    "ts_ms": 1_771_236_000_500,
    "event_type": "acme.battery.low",
    "severity": "warn",
    "source_component": "power",
    "extensions": {"acme.shift": "night"},
    "payload": {"percent": 12},
}


def paths() -> dict[str, Any]:
    return {
        f"{RUNTIMES}/negotiate": {"post": _negotiate(), "get": _effective()},
        f"{RUNTIMES}/streams/{{stream_id}}/events": {"post": _emit(), "get": _poll()},
        f"{RUNTIMES}/status": {"get": _status()},
    }


def _negotiate() -> dict[str, Any]:
    asked = {
        "supported_contract_versions": [CONTRACT_VERSION],
        "requested_capabilities": [RECEIPT_TERMINALITY],
        "profile": "desktop-full",
        "limits": {"max_poll_events": 500},
    }
    return operation(
        "streams",
        "negotiate",
        "Agree on version, capabilities and limits",
        "Comes before a client's first emit or poll of a runtime; again, it replaces what that client agreed. Each "
        "client has its own. It leaves a row in the audit. Needs the role producer or consumer.",
        {
            "200": response("Agreed.", ref("NegotiateAnswer")),
            **refusals(errors.BatchTooLarge, errors.ContractIncompatible),
        },
        parameters=[RUNTIME],
        body={JSON: {"schema": ref("NegotiateRequest"), "example": asked}},
    )


def _effective() -> dict[str, Any]:
    return operation(
        "streams",
        "effectiveNegotiation",
        "What holds for this client with this runtime",
        "As it was answered when the client negotiated. Needs the role producer or consumer.",
        {"200": response("This holds.", ref("NegotiateAnswer")), **refusals(errors.InvalidState)},
        parameters=[RUNTIME],
    )


def _emit() -> dict[str, Any]:
    examples = {
        "one": {"summary": "One event", "value": EVENT},
        "batch": {"summary": "A batch", "value": {"events": [EVENT, EXTENSION]}},
    }
    return operation(
        "streams",
        "emitEvents",
        "Store one event or many, each exactly once",
        "The same event again answers `deduped` with its `seq_no`. A batch is answered 200 with one result per event; "
        "a single event that is refused has the status of its error. Secret fields are dropped and sensitive ones "
        "transformed before anything is stored. Needs the role producer.",
        {
            "200": response(
                "Stored, now or before; of a batch, see each result.",
                {"anyOf": [ref("Emitted"), ref("EmittedBatch")]},
            ),
            **refusals(
                errors.MaxExtensionKeysExceeded,
                errors.InvalidState,
                errors.AlreadyTerminal,
                errors.Conflict,
                errors.EventTooLarge,
                errors.BatchTooLarge,
            ),
        },
        parameters=[RUNTIME, STREAM],
        body={JSON: {"schema": {"anyOf": [ref("StreamDraft"), ref("StreamBatch")]}, "examples": examples}},
    )


def _poll() -> dict[str, Any]:
    return operation(
        "streams",
        "pollEvents",
        "Read a stream's events after a cursor",
        "A batch holds at most `max` events and `max_batch_bytes`. A cursor never resets by itself: one whose next "
        "event was pruned is refused, and a poll without cursor starts over with a `StreamGap` that says what is "
        "gone. Needs the role consumer.",
        {
            "200": response("Here they are; none if nothing is new.", ref("PollAnswer")),
            **refusals(
                errors.MaxPollEventsExceeded,
                errors.InvalidCursor,
                errors.InvalidState,
                errors.StreamDegraded,
                errors.CursorExpired,
                errors.BatchTooLarge,
            ),
        },
        parameters=[RUNTIME, STREAM, CURSOR, MAX],
    )


def _status() -> dict[str, Any]:
    return operation(
        "streams",
        "readStatus",
        "Read where a runtime stands",
        "A projection of each of its streams, with the place it was taken at. Needs the role consumer.",
        {"200": response("Here it is.", ref("StatusAnswer")), **refusals()},
        parameters=[RUNTIME, REBUILD],
    )
