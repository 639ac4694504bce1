"""The registry of realtime events: every type, its family, its payload model and its published JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.ledger.domain.access import MAX_NAME_BYTES
from millrace.ledger.domain.instants import UTC_DATE_TIME
from millrace.realtime.doors import payloads
from millrace.realtime.doors.fields import NOT_BLANK

MAX_BYTES: Mapping[str, int] = {"eventId": 256, "sessionId": MAX_NAME_BYTES, "type": 256}
VERSION = r"1\.(?:0|[1-9][0-9]*)"

TYPES: Mapping[str, type[payloads.Payload]] = {
    "call.started": payloads.CallStarted,
    "call.connecting": payloads.CallConnecting,
    "call.connected": payloads.CallConnected,
    "call.reconnecting": payloads.CallReconnecting,
    "call.ended": payloads.CallEnded,
    "call.error": payloads.CallError,
    "call.terminal_failure": payloads.CallTerminalFailure,
    "call.turn.owner_changed": payloads.CallTurnOwnerChanged,
    "call.turn.timing": payloads.CallTurnTiming,
    "transcript.partial": payloads.TranscriptPartial,
    "transcript.final": payloads.TranscriptFinal,
    "orchestration.action.requested": payloads.ActionProposed,
    "action.proposed": payloads.ActionProposed,
    "action.requires_confirmation": payloads.ActionRequiresConfirmation,
    "action.executed": payloads.ActionExecuted,
    "action.failed": payloads.ActionFailed,
    "safety.blocked": payloads.SafetyBlocked,
    "safety.approved": payloads.SafetyApproved,
    "billing.usage.recorded": payloads.Usage,
    "billing.adjustment.created": payloads.BillingAdjustmentCreated,
    "usage.tick": payloads.Usage,
    "usage.warning": payloads.UsageWarning,
    "usage.stopped": payloads.UsageStopped,
}


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
            "sessionId": _id("sessionId", "The session whose log the event joins."),
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
    said = f"{meaning} At most {limit} bytes of UTF-8."
    return {"type": "string", "minLength": 1, "maxLength": limit, "pattern": NOT_BLANK, "description": said}
