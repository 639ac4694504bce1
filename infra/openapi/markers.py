"""The routes of markers, which belong to the streams contract."""

from __future__ import annotations

from typing import Any

from infra.openapi.parts import JSON, operation, parameter, ref, response
from infra.openapi.sdk_errors import refusals
from infra.openapi.streams import NAME, RUNTIME, RUNTIMES
from millrace.streams.application.markers import DEFAULT_LISTED, MAX_LISTED
from millrace.streams.domain import errors
from millrace.streams.domain.cursor import MAX_CURSOR_BYTES
from millrace.streams.domain.errors import SdkError
from millrace.streams.domain.marker import MAX_REVISION

MARKER = parameter("marker_id", "path", NAME)
LIST = [
    parameter(
        "cursor",
        "query",
        {"type": "string", "minLength": 1, "maxLength": MAX_CURSOR_BYTES},
        "The `next_cursor` of the page before, with the same `topic_id`.",
    ),
    parameter(
        "max",
        "query",
        {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "default": DEFAULT_LISTED},
        "Markers at most.",
    ),
    parameter("topic_id", "query", NAME, "Only the markers of this topic."),
]
EXPECTED = parameter(
    "expected_revision",
    "query",
    {"type": "integer", "minimum": 1, "maximum": MAX_REVISION},
    "The revision this write is based on; it must be given.",
) | {"required": True}

POSITION = {"lat": 52.5163, "lon": 13.3777, "alt_m": 34.5}
CREATE = {"marker_id": "gate", "label": "Gate", "position": POSITION, "topic_id": "patrol"}
STALE = "The revision is checked: a stale one is a conflict, and nothing changes. Needs the role producer."


def paths() -> dict[str, Any]:
    marker = f"{RUNTIMES}/markers/{{marker_id}}"
    return {
        f"{RUNTIMES}/markers": {"post": _create(), "get": _list()},
        f"{marker}/position": {"patch": _move()},
        marker: {"delete": _delete()},
    }


def _create() -> dict[str, Any]:
    return _operation(
        "createMarker",
        "Create a marker",
        "The id of a live marker is a conflict; that of a deleted one goes on at its next revision. Each change of a "
        "marker is an event of the stream `markers`, within the client's `max_event_bytes`. Needs the role producer.",
        "MarkerWritten",
        errors.MaxExtensionKeysExceeded,
        errors.InvalidState,
        errors.Conflict,
        errors.EventTooLarge,
        errors.BatchTooLarge,
        parameters=[RUNTIME],
        body={JSON: {"schema": ref("MarkerCreate"), "example": CREATE}},
    )


def _list() -> dict[str, Any]:
    return _operation(
        "listMarkers",
        "List a runtime's markers",
        "A page may be short: go on until `next_cursor` is null. Needs the role consumer.",
        "MarkerList",
        errors.InvalidCursor,
        parameters=[RUNTIME, *LIST],
    )


def _move() -> dict[str, Any]:
    return _operation(
        "moveMarker",
        "Move a marker",
        f"Its extensions can be replaced at the same time. {STALE}",
        "MarkerWritten",
        errors.MaxExtensionKeysExceeded,
        errors.Absent,
        errors.InvalidState,
        errors.Conflict,
        errors.EventTooLarge,
        errors.BatchTooLarge,
        parameters=[RUNTIME, MARKER],
        body={JSON: {"schema": ref("MarkerMove"), "example": {"position": POSITION, "expected_revision": 1}}},
    )


def _delete() -> dict[str, Any]:
    return _operation(
        "deleteMarker",
        "Delete a marker",
        f"One that is not there answers `accepted: false`. {STALE}",
        "MarkerDeleted",
        errors.InvalidState,
        errors.Conflict,
        errors.EventTooLarge,
        parameters=[RUNTIME, MARKER, EXPECTED],
    )


def _operation(
    name: str, summary: str, description: str, answer: str, *kinds: type[SdkError], **request: Any
) -> dict[str, Any]:
    responses = {"200": response("Done.", ref(answer)), **refusals(*kinds)}
    return operation("markers", name, summary, description, responses, **request)
