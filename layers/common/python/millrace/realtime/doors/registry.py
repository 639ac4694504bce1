"""The registry of realtime events, made from the classes of `event_types`: families, models, JSON Schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.ledger.domain.instants import UTC_DATE_TIME
from millrace.ledger.domain.naming import MAX_NAME_BYTES, NAME, NOT_BLANK
from millrace.realtime.doors import event_types
from millrace.realtime.doors.payload import Payload

MAX_BYTES: Mapping[str, int] = {"eventId": 256, "sessionId": MAX_NAME_BYTES, "type": 256}
VERSION = r"1\.(?:0|[1-9][0-9]*)"

TYPES: Mapping[str, type[Payload]] = {
    model.type_name: model
    for model in vars(event_types).values()
    if isinstance(model, type) and issubclass(model, Payload) and model is not Payload
}
"""Every class of `event_types`, in its order there."""


def family_of(name: str) -> str:
    return name.partition(".")[0]


FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(map(family_of, TYPES)))


def types_of(family: str) -> list[str]:
    return [name for name in TYPES if family_of(name) == family]


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a whole event of this type. `KeyError` for a type that is not known."""
    payload = TYPES[name].model_json_schema()
    del payload["title"]
    for field in payload["properties"].values():
        del field["title"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "type": "object",
        "additionalProperties": False,
        "required": ["eventId", "sessionId", "ts", "type", "payload", "schemaVersion"],
        "properties": {
            "eventId": _id("eventId", "One event in the whole tenant: the same id again is the same event."),
            "sessionId": {
                **_id("sessionId", f"The session whose log the event joins: {NAME}."),
                "not": {"pattern": "[/?#%\\u0000-\\u001f\\u007f-\\u009f]"},
            },
            "ts": {
                "type": "string",
                "format": "date-time",
                "pattern": f"^{UTC_DATE_TIME}$",
                "description": "When it was emitted, in UTC; kept as sent and compared as an instant.",
            },
            "type": {"const": name},
            "payload": payload,
            "schemaVersion": {"type": "string", "pattern": f"^{VERSION}$"},
        },
    }


def _id(name: str, meaning: str) -> dict[str, Any]:
    limit = MAX_BYTES[name]
    description = f"{meaning} At most {limit} bytes of UTF-8."
    return {"type": "string", "minLength": 1, "maxLength": limit, "pattern": NOT_BLANK, "description": description}
