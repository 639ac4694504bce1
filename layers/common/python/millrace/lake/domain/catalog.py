"""The catalog envelope (C1): what makes an event valid, how a missing key is made (C2), and what is committed of it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.errors import BadRequest, TooLarge
from millrace.ledger.domain.instants import instant
from millrace.ledger.domain.kinds import Errors, kind_of
from millrace.ledger.domain.naming import is_blank
from millrace.ledger.domain.page import Draft

MAX_TEXT_BYTES = 1_024
"""Of a text that comes through the catalog's door; the archive also takes what other doors have committed."""
MAX_EVENT_BYTES = 96 * 1024
MAX_VERSION = 2**32 - 1
"""The envelope's protobuf form has a uint32 here."""
MAX_POSITION = 2**53 - 1
AUTO = "auto:"

REQUIRED_TEXTS = ("event_type", "idempotency_key", "occurred_at", "source")
OPTIONAL = frozenset({"idempotency_key", "trace_id", "sequence_position"})
"""At the door; null there is the same as nothing."""
FIELDS = frozenset({*REQUIRED_TEXTS, *OPTIONAL, "event_version", "payload"})
KEYED = ("event_type", "event_version", "occurred_at", "source", "payload")
"""What a generated key is made of."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """An event as the archive and the tables know it. `payload` is canonical JSON; `occurred_at` is in UTC."""

    event_type: str
    event_version: int
    idempotency_key: str
    occurred_at: str
    source: str
    payload: bytes
    trace_id: str | None = None
    sequence_position: int | None = None


def generate_key(event: Mapping[str, Any]) -> str:
    """C2: the same request gives the same key, so that a retry without one is still one event. What happened at another
    time, or elsewhere, is another event."""
    return AUTO + hashlib.sha256(canonical({name: event[name] for name in KEYED})).digest()[:16].hex()


def check_event(event: Any) -> Envelope:
    """C1: a caller's event, its key made up when it has none. `BadRequest` lists every field that breaks a rule."""
    if not isinstance(event, dict):
        raise BadRequest("An event must be an object.", field="event", value_class=kind_of(event))
    event = {name: value for name, value in event.items() if value is not None or name not in OPTIONAL}
    errors = problems(event)
    errors += _refused_at_the_door(event, {error["field"] for error in errors})
    if "sequence_position" in event:
        errors.append(_error("sequence_position", "is given by the ledger; leave it out"))
    if errors:
        raise BadRequest("The event breaks the rules of its envelope.", field=errors[0]["field"], errors=errors)
    if "idempotency_key" not in event:
        event = {**event, "idempotency_key": generate_key(event)}
    return to_envelope(event)


def problems(event: Mapping[str, Any], *, key_required: bool = False) -> Errors:
    """What is wrong with an envelope, wherever it is from, field by field; the values are never told.

    A text need only be there: blank ones and long ones are refused at the catalog's door and nowhere else, since other
    contracts commit ids and types that it would not take.
    """
    errors: Errors = []
    for field in REQUIRED_TEXTS:
        if field in event or field != "idempotency_key" or key_required:
            _check_text(field, event.get(field), errors)
    _check_integer("event_version", event.get("event_version"), MAX_VERSION, errors)
    if event.get("trace_id") is not None:
        _check_text("trace_id", event["trace_id"], errors)
    if event.get("sequence_position") is not None:
        _check_integer("sequence_position", event["sequence_position"], MAX_POSITION, errors)
    if event.get("payload") is None:
        errors.append(_error("payload", "is missing"))
    if not any(error["field"] == "occurred_at" for error in errors):
        try:
            instant(event["occurred_at"])
        except ValueError:
            errors.append(_error("occurred_at", "must be an ISO-8601 date-time in UTC, such as 2026-01-31T09:30:00Z"))
    errors.extend(_error(str(name)[:64], "is not a field of the envelope") for name in sorted(set(event) - FIELDS))
    return errors


def to_envelope(event: Mapping[str, Any]) -> Envelope:
    """A checked event as a value."""
    return Envelope(
        event["event_type"],
        event["event_version"],
        event["idempotency_key"],
        event["occurred_at"],
        event["source"],
        canonical(event["payload"]),
        event.get("trace_id"),
        event.get("sequence_position"),
    )


def draft(envelope: Envelope) -> Draft:
    """What is committed. Under a key of the caller's own, the content is type, version and payload: a retry may tell
    another time, source or trace, and the first one told is kept."""
    head = b'{"event_type":%b,"event_version":%d,' % (canonical(envelope.event_type), envelope.event_version)
    payload = b'"payload":' + envelope.payload
    made = {"idempotency_key": envelope.idempotency_key, "occurred_at": envelope.occurred_at}
    origin = {"source": envelope.source} | ({"trace_id": envelope.trace_id} if envelope.trace_id is not None else {})
    body = head + canonical(made)[1:-1] + b"," + payload + b"," + canonical(origin)[1:]
    if len(body) > MAX_EVENT_BYTES:
        raise TooLarge(
            "The event is larger than the limit.", field="event", max_bytes=MAX_EVENT_BYTES, actual_bytes=len(body)
        )
    return Draft(envelope.idempotency_key, digest(head + payload + b"}"), body)


def is_text(value: Any) -> bool:
    """A string that UTF-8 can carry: no lone surrogate in it."""
    try:
        return isinstance(value, str) and (value.isascii() or bool(value.encode()))
    except UnicodeEncodeError:
        return False


def _refused_at_the_door(event: Mapping[str, Any], made: Collection[str]) -> Iterator[dict[str, str]]:
    for field in (*REQUIRED_TEXTS, "trace_id"):
        text = "" if field in made else event.get(field) or ""
        if text and is_blank(text):
            yield _error(field, "must not be blank")
        elif len(text.encode()) > MAX_TEXT_BYTES:
            yield _error(field, f"must be at most {MAX_TEXT_BYTES} bytes of UTF-8")


def _check_text(field: str, value: Any, errors: Errors) -> None:
    if not isinstance(value, str):
        errors.append(_error(field, f"must be a string, not {kind_of(value)}"))
    elif not value:
        errors.append(_error(field, "must not be blank"))
    elif not is_text(value):
        errors.append(_error(field, "must not have a lone surrogate"))


def _check_integer(field: str, value: Any, most: int, errors: Errors) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        errors.append(_error(field, f"must be an integer, not {kind_of(value)}"))
    elif not 1 <= value <= most:
        errors.append(_error(field, f"must be from 1 to {most}"))


def _error(field: str, message: str) -> dict[str, str]:
    return {"field": field, "message": message}
