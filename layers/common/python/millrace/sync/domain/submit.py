"""The sync contract, inbound: what makes a submit request and its items valid (S1, S3, S7, S12)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.kinds import Errors, kind_of
from millrace.ledger.domain.page import Draft
from millrace.sync.domain.as_sent import AsSent

MAX_BATCH = 100
MAX_ID_BYTES = 1_024
MAX_PARTITIONS = 64
MAX_PARTITION_BYTES = 128
MAX_EVENT_BYTES = 96 * 1024
MAX_ERRORS = 10

VALIDATION_FAILED, FORBIDDEN = "validation_failed", "forbidden"
TREE_TYPES = frozenset({"set", "unset", "treePush", "treeDelete", "treeUpdate", "treeMove"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """An item that is not committed, and why."""

    reason: str
    errors: Errors


def check_request(body: Any) -> Sequence[Mapping[str, Any]]:
    """S1: the request as a whole, before any item is looked at."""
    if not isinstance(body, dict):
        raise _bad("", body, "The body must be an object with the key events.")
    events = body.get("events")
    if not isinstance(events, list):
        raise _bad("events", events, f"events must be a list of 1 to {MAX_BATCH} objects.")
    if not 1 <= len(events) <= MAX_BATCH:
        raise BadRequest(
            f"events must have 1 to {MAX_BATCH} items.", field="events", max_batch_size=MAX_BATCH, actual=len(events)
        )
    seen: dict[str, int] = {}
    for index, item in enumerate(events):
        if not isinstance(item, dict):
            raise _bad(f"events[{index}]", item, "Every item of events must be an object.")
        id_ = item.get("id")
        if not isinstance(id_, str) or not id_:
            raise _bad(f"events[{index}].id", id_, "Every item needs an id: a non-empty string.")
        if id_ in seen:
            raise BadRequest(
                "Two items of one request have the same id.",
                field=f"events[{index}].id",
                first=f"events[{seen[id_]}].id",
            )
        seen[id_] = index
    return events


def check_item(item: Mapping[str, Any], identity: Identity, profile: str) -> Draft | Refusal:
    """S3, S7, S12: one item becomes a draft, or is refused without hurting its neighbours."""
    errors: Errors = []
    if len(item["id"].encode()) > MAX_ID_BYTES:
        errors.append(_error("id", f"must be at most {MAX_ID_BYTES} bytes of UTF-8"))
    partitions = _partitions(item.get("partitions"), errors)
    event = item.get("event")
    _check_event(event, PROFILES[profile], errors)
    as_sent = item.get("as")
    if isinstance(as_sent, AsSent):
        _check_flat(event, errors)
    meta = item.get("meta")
    if meta is not None and not isinstance(meta, dict):
        errors.append(_error("meta", f"must be an object, not {kind_of(meta)}"))
    client_id = item.get("client_id")
    if client_id is not None and not isinstance(client_id, str):
        errors.append(_error("client_id", f"must be a string, not {kind_of(client_id)}"))
    if errors:
        return Refusal(VALIDATION_FAILED, _first_errors(errors))
    if client_id not in (None, identity.client_id):
        return Refusal(FORBIDDEN, [_error("client_id", "is not the client this token was issued to")])
    foreign = [index for index, name in enumerate(partitions) if not identity.reaches(name)]
    if foreign:
        return Refusal(FORBIDDEN, [_error("partitions", "names a partition this token does not reach")])
    came = as_sent.stored if isinstance(as_sent, AsSent) else b""
    return _draft(item["id"], partitions, event, meta, came)


def _first_errors(errors: Errors) -> Errors:
    """Enough of them to act on; one item's errors must not fill the answer."""
    more = len(errors) - MAX_ERRORS
    return errors if more <= 0 else [*errors[:MAX_ERRORS], _error("item", f"has {more} more errors")]


def _draft(id_: str, partitions: tuple[str, ...], event: Any, meta: Any, came: bytes) -> Draft | Refusal:
    """S5: the digest covers the sorted partitions and the event; meta and how it came are kept but not compared."""
    content = canonical(event)
    names = canonical(list(partitions))
    body = b'"event":' + content + (b"}" if meta is None else b',"meta":' + canonical(meta) + b"}")
    size = 1 + len(body) + len(names) + len(id_.encode())
    if size > MAX_EVENT_BYTES:
        message = f"is too large: {size} bytes with id, partitions and meta, the limit is {MAX_EVENT_BYTES}"
        return Refusal(VALIDATION_FAILED, [_error("event", message)])
    digested = digest(b'{"event":' + content + b',"partitions":' + names + b"}")
    return Draft(id_, digested, b"{" + came + body, partitions)


def normal_partition(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def partition_problem(name: Any) -> str | None:
    """Why this is no partition name, or None."""
    if not isinstance(name, str):
        return f"must be a string, not {kind_of(name)}"
    if not name:
        return "must not be empty"
    if len(normal_partition(name).encode()) > MAX_PARTITION_BYTES:
        return f"must be at most {MAX_PARTITION_BYTES} bytes of UTF-8"
    return None


def _partitions(value: Any, errors: Errors) -> tuple[str, ...]:
    if not isinstance(value, list):
        errors.append(_error("partitions", f"must be a list of 1 to {MAX_PARTITIONS} strings, not {kind_of(value)}"))
        return ()
    if not 1 <= len(value) <= MAX_PARTITIONS:
        errors.append(_error("partitions", f"must have 1 to {MAX_PARTITIONS} members, not {len(value)}"))
        return ()
    for index, name in enumerate(value):
        if problem := partition_problem(name):
            errors.append(_error(f"partitions[{index}]", problem))
    if errors:
        return ()
    names = sorted(normal_partition(name) for name in value)
    if len(set(names)) < len(names):
        errors.append(_error("partitions", "must not name a partition twice"))
    return tuple(names)


def _check_event(event: Any, profile: Callable[[Mapping[str, Any], Errors], None], errors: Errors) -> None:
    if not isinstance(event, dict):
        errors.append(_error("event", f"must be an object with type and payload, not {kind_of(event)}"))
        return
    if not isinstance(event.get("type"), str) or not event["type"]:
        errors.append(_error("event.type", "must be a non-empty string"))
        return
    if "payload" not in event:
        errors.append(_error("event.payload", "is missing"))
        return
    profile(event, errors)


def _check_flat(event: Any, errors: Errors) -> None:
    """S16: what the two shapes have beside type and payload. As anything else it could not come back as it was sent."""
    version, user = event.get("schemaVersion"), event.get("userId")
    if version is not None and (type(version) is not int or version < 1):
        errors.append(_error("event.schemaVersion", f"must be an integer from 1, not {_class(version)}"))
    if user is not None and not isinstance(user, str):
        errors.append(_error("event.userId", f"must be a string, not {kind_of(user)}"))


def _class(value: Any) -> str:
    return "a smaller one" if type(value) is int else kind_of(value)


def _open(event: Mapping[str, Any], errors: Errors) -> None:
    """Any type, any payload."""


def _canonical(event: Mapping[str, Any], errors: Errors) -> None:
    if event["type"] != "event":
        errors.append(_error("event.type", 'must be "event" in a project with the canonical profile'))
    payload = event["payload"]
    if not isinstance(payload, dict):
        errors.append(_error("event.payload", f"must be an object with schema and data, not {kind_of(payload)}"))
        return
    if not isinstance(payload.get("schema"), str) or not payload["schema"]:
        errors.append(_error("event.payload.schema", "must be a non-empty string"))
    if "data" not in payload:
        errors.append(_error("event.payload.data", "is missing"))
    if not isinstance(payload.get("meta"), dict | None):
        errors.append(_error("event.payload.meta", f"must be an object, not {kind_of(payload['meta'])}"))
    errors.extend(
        _error(f"event.payload.{key[:64]}", "is unknown") for key in sorted(set(payload) - {"schema", "data", "meta"})
    )


def _compatibility(event: Mapping[str, Any], errors: Errors) -> None:
    if event["type"] not in TREE_TYPES:
        errors.append(_error("event.type", f"must be one of {', '.join(sorted(TREE_TYPES))}"))
    if not isinstance(event["payload"], dict):
        errors.append(_error("event.payload", f"must be an object, not {kind_of(event['payload'])}"))


OPEN = "open"
PROFILES: Mapping[str, Callable[[Mapping[str, Any], Errors], None]] = {
    OPEN: _open,
    "canonical": _canonical,
    "compatibility": _compatibility,
}


def _error(field: str, message: str) -> dict[str, str]:
    return {"field": field, "message": message}


def _bad(field: str, value: Any, message: str) -> BadRequest:
    return BadRequest(message, field=field or "body", value_class=kind_of(value))
