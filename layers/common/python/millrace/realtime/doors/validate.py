"""Validation of a realtime event at the door (R1, R2): legacy keys are renamed, then every error is collected."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from millrace.ledger.domain.instants import instant
from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.domain.naming import is_blank, name_problem
from millrace.realtime.domain.verdict import Invalid, Valid
from millrace.realtime.doors.registry import FAMILIES, MAX_BYTES, TYPES, VERSION, family_of, types_of

LEGACY: Mapping[str, str] = {"ts": "timestamp", "schemaVersion": "version"}
MAX_NAMED_KEYS = 20
"""Unknown keys that get an error of their own; the rest are counted."""

_VERSION = re.compile(VERSION)
_NAMEABLE = re.compile(r"[0-9A-Za-z.+-]{1,32}")


def validate(raw: Any) -> Valid | Invalid:
    if not isinstance(raw, dict):
        return Invalid([_problem("", f"an event must be an object, not {kind_of(raw)}")])
    sent_as = {key: _name_sent(raw, key) for key in CHECKS}
    errors = list(_strangers(raw, frozenset(sent_as.values())))
    for key, check in CHECKS.items():
        name = sent_as[key]
        if name not in raw:
            errors.append(_problem(_pointer(key), "is required"))
        else:
            errors += [_problem(_pointer(name) + below, message) for below, message in check(raw[name], raw)]
    if errors:
        return Invalid(errors)
    event = {key: raw[name] for key, name in sent_as.items()}
    return Valid(event, instant(event["ts"]))


def _name_sent(raw: Mapping[str, Any], key: str) -> str:
    """The name a key came under: its legacy one only when the canonical one is not there."""
    legacy = LEGACY.get(key)
    return legacy if legacy is not None and legacy in raw and key not in raw else key


def _strangers(raw: Mapping[str, Any], known: frozenset[str]) -> Iterator[dict[str, str]]:
    canonical = {legacy: key for key, legacy in LEGACY.items()}
    strangers = [key for key in raw if key not in known]
    for key in strangers[:MAX_NAMED_KEYS]:
        if key in canonical:
            yield _problem(_pointer(key), f"is the old name of {canonical[key]}; send {canonical[key]} alone")
        else:
            yield _problem(_pointer(key[:128]), "is not a key of the envelope; what is yours goes into payload")
    if len(strangers) > MAX_NAMED_KEYS:
        yield _problem("", f"has {len(strangers) - MAX_NAMED_KEYS} more keys that are not the envelope's")


Found = Iterator[tuple[str, str]]
"""What is wrong with one member: where below it, and the message."""


def _text(value: Any, max_bytes: int) -> Found:
    if not isinstance(value, str):
        yield "", f"must be a string, not {kind_of(value)}"
    elif is_blank(value):
        yield "", "must not be blank"
    elif len(value.encode("utf-8", "surrogatepass")) > max_bytes:
        yield "", f"must be at most {max_bytes} bytes of UTF-8"


def _event_id(value: Any, _raw: Mapping[str, Any]) -> Found:
    return _text(value, MAX_BYTES["eventId"])


def _session_id(value: Any, _raw: Mapping[str, Any]) -> Found:
    wrong = list(_text(value, MAX_BYTES["sessionId"]))
    yield from wrong
    problem = None if wrong else name_problem(value)
    if problem is not None:
        yield "", problem


def _ts(value: Any, _raw: Mapping[str, Any]) -> Found:
    if not isinstance(value, str):
        yield "", f"must be a string, not {kind_of(value)}"
        return
    try:
        instant(value)
    except ValueError:
        yield "", "must be an ISO-8601 date-time in UTC (Z or +00:00), such as 2026-02-16T10:00:00.000Z"


def _type(value: Any, _raw: Mapping[str, Any]) -> Found:
    wrong = list(_text(value, MAX_BYTES["type"]))
    if wrong or value in TYPES:
        yield from wrong
    elif family_of(value) in FAMILIES:
        known = ", ".join(types_of(family_of(value)))
        yield "", f"is not a known type of the family {family_of(value)}; known are {known}"
    else:
        yield "", f"is of no known family; the families are {', '.join(f'{name}.*' for name in FAMILIES)}"


def _payload(value: Any, raw: Mapping[str, Any]) -> Found:
    if not isinstance(value, dict):
        yield "", f"must be an object, not {kind_of(value)}"
        return
    name = raw.get("type")
    if isinstance(name, str) and name in TYPES:
        for field, message in TYPES[name].problems(value):
            yield _pointer(field) if field else "", message


def _schema_version(value: Any, _raw: Mapping[str, Any]) -> Found:
    if not isinstance(value, str):
        yield "", f"must be a string such as 1.0, not {kind_of(value)}"
    elif not _VERSION.fullmatch(value):
        named = value if _NAMEABLE.fullmatch(value) else "this version"
        yield "", f"{named} is not supported; send 1.x, today 1.0, in the form this contract describes"


CHECKS: Mapping[str, Callable[[Any, Mapping[str, Any]], Found]] = {
    "eventId": _event_id,
    "sessionId": _session_id,
    "ts": _ts,
    "type": _type,
    "payload": _payload,
    "schemaVersion": _schema_version,
}


def _pointer(key: str) -> str:
    return "/" + key.replace("~", "~0").replace("/", "~1")


def _problem(pointer: str, message: str) -> dict[str, str]:
    return {"pointer": pointer, "message": message}
