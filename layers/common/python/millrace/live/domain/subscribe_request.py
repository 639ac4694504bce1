"""The `subscribe` message (S14): a tail of one realtime session, or of one stream of a runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.access import CONSUMER, Identity, runtime_partition, session_partition
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.domain.names import Ledger, realtime_ledger, stream_ledger
from millrace.ledger.domain.naming import MAX_NAME_BYTES

MAX_POSITION = 2**53 - 1
SUBJECT = "what this subscribes to"


@dataclass(frozen=True, slots=True)
class SubscribeRequest:
    ledger: Ledger
    start: Callable[[int, int], int]
    """The position to begin after, given the floor and the head."""
    announces_watermark: bool
    cursor: tuple[str, str, str] | None = None
    """A stream's runtime and id, and the cursor to begin after; then `start` does not count."""
    tells_gap: bool = False
    """It begins at what is retained: if that is not position 1, the gap below is told first."""


def check_subscribe(payload: Mapping[str, Any], identity: Identity) -> SubscribeRequest:
    identity.require(CONSUMER)
    kind = payload.get("kind")
    if kind == "session":
        session = _name(payload, "session_id")
        identity.require_reach(session_partition(session), SUBJECT, field="kind")
        after = 0 if payload.get("after_sequence") is None else payload["after_sequence"]
        if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after <= MAX_POSITION:
            raise BadRequest(
                "after_sequence must be an integer from 0.", field="after_sequence", value_class=kind_of(after)
            )
        return SubscribeRequest(realtime_ledger(identity.tenant, session), lambda _floor, _head: after, False)
    if kind == "stream":
        runtime, stream = (_path_name(payload, field) for field in ("runtime_id", "stream_id"))
        identity.require_reach(runtime_partition(runtime), SUBJECT, field="kind")
        start = "snapshot" if payload.get("start") is None else payload["start"]
        cursor = payload.get("cursor")
        if not isinstance(start, str) or start not in STARTS:
            raise BadRequest(f"start must be one of {', '.join(STARTS)}.", field="start", value_class=kind_of(start))
        if cursor is not None and not isinstance(cursor, str):
            raise BadRequest("cursor must be a string.", field="cursor", value_class=kind_of(cursor))
        if cursor is not None and payload.get("start") is not None:
            raise BadRequest("Give a start or a cursor, not both.", field="cursor")
        place = None if cursor is None else (runtime, stream, cursor)
        return SubscribeRequest(
            stream_ledger(identity.tenant, runtime, stream),
            STARTS[start],
            True,
            place,
            start != "tail" and cursor is None,
        )
    raise BadRequest("kind must be session or stream.", field="kind", value_class=kind_of(kind))


STARTS: Mapping[str, Callable[[int, int], int]] = {
    "head": lambda floor, _head: floor - 1,
    "tail": lambda _floor, head: head,
    "snapshot": lambda floor, _head: floor - 1,
}


def _name(payload: Mapping[str, Any], field: str) -> str:
    value = payload.get(field)
    if not isinstance(value, str) or not value or len(value.encode()) > MAX_NAME_BYTES:
        rule = f"{field} must be a string of 1 to {MAX_NAME_BYTES} bytes."
        raise BadRequest(rule, field=field, value_class=kind_of(value))
    return value


def _path_name(payload: Mapping[str, Any], field: str) -> str:
    """Over HTTP the name is in a path, so it is one that a path carries unchanged."""
    value = _name(payload, field)
    if "%" in value or "/" in value:
        raise BadRequest(f"{field} must not contain % or /.", field=field, value_class=kind_of(value))
    return value
