"""An event on its way into a stream (T1, T2, T10): checked, sifted for privacy, and ready to be committed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.domain.naming import MAX_NAME_BYTES, is_text, name_problem
from millrace.ledger.domain.page import Draft
from millrace.streams.domain.errors import EventTooLarge, InvalidArgument, MaxExtensionKeysExceeded
from millrace.streams.domain.negotiate import Negotiated, StreamLimits
from millrace.streams.domain.privacy import Policy, Sifted

MARKER_STREAM = "markers"
SEVERITIES = ("debug", "info", "warn", "error", "critical")
TRANSITION, EXTENSION = "DeliveryStateTransition", "ExtensionEvent"
EVENT_TYPES = (
    *("RuntimeStateChanged", TRANSITION, "DeliveryRetryScheduled", "DeliveryTrace", "InboundMessageReceived"),
    *("ReceiptObserved", "InterfaceStateChanged", "PolicyChanged", "HealthSnapshot", "ErrorRaised", "StreamGap"),
    EXTENSION,
)
REQUIRED = ("event_id", "contract_version", "ts_ms", "event_type", "severity", "source_component", "payload")
OPTIONAL_TEXTS = ("operation_id", "message_id", "peer_id", "correlation_id", "trace_id")
OPTIONAL = (*OPTIONAL_TEXTS, "extensions", "runtime_id", "stream_id", "seq_no")
"""Of these null means the same as nothing."""
KNOWN = frozenset({*REQUIRED, *OPTIONAL})
MAX_TEXT_BYTES = 256
MAX_TS_MS = 2**53 - 1
MAX_STORED_BYTES = 96 * 1024
"""Of a whole event, so that it always fits into a WebSocket message."""

EXTENSION_KEY = "[a-z0-9_.-]{1,64}"
EXTENSION_NAME = "[a-z0-9_-]+([.][a-z0-9_-]+){2,}"
_EXTENSION_KEY, _EXTENSION_NAME = re.compile(EXTENSION_KEY), re.compile(EXTENSION_NAME)
_NULL = re.compile(rf'"({"|".join(OPTIONAL)})":null'.encode())
_RESERVED_ID = re.compile(r"gap-[0-9]+")


@dataclass(frozen=True, slots=True)
class Emission:
    """A checked event. `raw` are its sensitive values, which nobody stores without a grant."""

    draft: Draft
    event: Mapping[str, Any]
    raw: list[tuple[str, str, Any]]
    earlier: Draft | None = None
    """The draft of hubs that took null for content, if it was another one: they may have committed it."""

    @property
    def is_transition(self) -> bool:
        return bool(self.event["event_type"] == TRANSITION)


def check_event(
    sent: Any, runtime_id: str, stream_id: str, negotiated: Negotiated, policy: Policy, hashed: Callable[[str], str]
) -> Emission:
    """Raises the contract's error for the first rule it breaks; no error holds a value."""
    if not isinstance(sent, dict):
        raise invalid("event", "An event must be an object.", sent)
    _check_payload(sent.get("payload"), negotiated.limits)
    event = {name: value for name, value in policy.without_secrets(sent).items() if not _is_absent(name, value)}
    for field, of in (("runtime_id", runtime_id), ("stream_id", stream_id)):
        if event.setdefault(field, of) != of:
            raise invalid(field, f"{field} must be that of the path.", event[field])
    if stream_id == MARKER_STREAM:
        raise invalid("stream_id", "The stream markers is written by the marker routes alone.", stream_id)
    _check_fields(event)
    _check_version(event["contract_version"], negotiated.version)
    _check_type(event)
    check_extensions(event.get("extensions"), negotiated.limits)
    sifted = policy.sift(event, hashed)
    return Emission(make_draft(sifted), sifted.clean, sifted.raw, _earlier_draft(sent, sifted, policy, hashed))


def _is_absent(name: str, value: Any) -> bool:
    return value is None and name in OPTIONAL


def _earlier_draft(sent: Any, sifted: Sifted, policy: Policy, hashed: Callable[[str], str]) -> Draft | None:
    nulls = {name: None for name in (*OPTIONAL_TEXTS, "extensions") if name in sent and sent[name] is None}
    counted = policy.sift(nulls, hashed).bare if nulls else {}
    if not counted:
        return None
    return Draft(sifted.clean["event_id"], digest(canonical({**sifted.bare, **counted})), canonical(sifted.clean))


def make_draft(sifted: Sifted) -> Draft:
    body = canonical(sifted.clean)
    if len(body) > MAX_STORED_BYTES:
        text = "The event with its extensions is larger than an event may be."
        raise EventTooLarge(text, field="event", max_event_bytes=MAX_STORED_BYTES, actual_bytes=len(body))
    content = body if sifted.bare is sifted.clean else canonical(sifted.bare)
    return Draft(sifted.clean["event_id"], digest(content), body)


def without_nulls(body: bytes) -> bytes:
    """A stored event without the optional fields that are null: earlier releases stored them so."""
    if b'":null' not in body or not _NULL.search(body):
        return body
    event: dict[str, Any] = json.loads(body)
    return canonical({name: value for name, value in event.items() if not _is_absent(name, value)})


def check_extensions(extensions: Any, limits: StreamLimits) -> None:
    if extensions is None:
        return
    if not isinstance(extensions, dict):
        raise invalid("extensions", "extensions must be an object.", extensions)
    if len(extensions) > limits.max_extension_keys:
        raise MaxExtensionKeysExceeded(
            f"extensions has more than {limits.max_extension_keys} keys.",
            field="extensions",
            max_extension_keys=limits.max_extension_keys,
            actual_keys=len(extensions),
        )
    bad = next((key for key in extensions if not _EXTENSION_KEY.fullmatch(key)), None)
    if bad is not None:
        rule = "A key of extensions must be 1 to 64 of a-z, 0-9 and _ . - (lower case)."
        raise invalid(f"extensions.{bad[:64]}", rule, bad)


def check_text(field: str, value: Any, max_bytes: int = MAX_TEXT_BYTES) -> str:
    if not isinstance(value, str) or not value.strip() or not is_text(value) or len(value.encode()) > max_bytes:
        raise invalid(field, f"{field} must be a non-blank string of at most {max_bytes} bytes.", value)
    return value


def check_name(field: str, value: Any) -> str:
    return check_text(field, value, MAX_NAME_BYTES)


def check_id(field: str, value: Any) -> str:
    """A runtime's or stream's id: one that a path carries unchanged, whoever decodes it."""
    check_name(field, value)
    if "%" in value or "/" in value:
        raise invalid(field, f"{field} must not contain % or /.", value)
    return str(value)


def check_new(**names: str) -> None:
    """Each by its field: whether a runtime, a stream or a tenant may have this name from now on."""
    for field, name in names.items():
        problem = name_problem(name)
        if problem is not None:
            raise invalid(field, f"{field} {problem}.", name)


def invalid(field: str, rule: str, value: Any) -> InvalidArgument:
    return InvalidArgument(rule, field=field, value_class=kind_of(value))


def _check_payload(payload: Any, limits: StreamLimits) -> None:
    """Measured as it was sent: the caller knows that size, not what redaction makes of it."""
    if not isinstance(payload, dict):
        raise invalid("payload", "payload must be an object.", payload)
    check_size(payload, limits, "payload")


def check_size(payload: Mapping[str, Any], limits: StreamLimits, field: str) -> None:
    """Of an event's payload, as compact JSON. The field is the part of the request that made it so large."""
    size = len(json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode())
    if size > limits.max_event_bytes:
        raise EventTooLarge(
            f"The event's payload has {size} bytes, the limit is {limits.max_event_bytes}.",
            field=field,
            max_event_bytes=limits.max_event_bytes,
            actual_bytes=size,
        )


def _check_fields(event: Mapping[str, Any]) -> None:
    if "seq_no" in event:
        raise invalid("seq_no", "seq_no is given by the hub; do not send one.", event["seq_no"])
    missing = next((name for name in REQUIRED if name not in event), None)
    if missing is not None:
        raise invalid(missing, f"An event needs {missing}.", None)
    unknown = next((name for name in event if name not in KNOWN), None)
    if unknown is not None:
        rule = "No such field in the envelope; put it into payload or extensions."
        raise invalid(unknown[:64], rule, event[unknown])
    check_text("event_id", event["event_id"])
    if _RESERVED_ID.fullmatch(event["event_id"]):
        raise invalid("event_id", "An event_id of the form gap-N is the hub's own.", event["event_id"])
    check_text("source_component", event["source_component"])
    for name in OPTIONAL_TEXTS:
        if event.get(name) is not None:
            check_text(name, event[name])
    ts = event["ts_ms"]
    if isinstance(ts, bool) or not isinstance(ts, int) or not 0 <= ts <= MAX_TS_MS:
        raise invalid("ts_ms", "ts_ms must be an integer: milliseconds since 1970.", ts)
    if event["severity"] not in SEVERITIES:
        raise invalid("severity", f"severity must be one of {', '.join(SEVERITIES)}.", event["severity"])


def _check_version(version: Any, negotiated: int) -> None:
    if isinstance(version, bool) or version != negotiated:
        raise InvalidArgument(
            f"contract_version must be the negotiated one, {negotiated}.",
            field="contract_version",
            value_class=kind_of(version),
            active_contract_version=negotiated,
        )


def _check_type(event: Mapping[str, Any]) -> None:
    kind, payload = check_text("event_type", event["event_type"]), event["payload"]
    if kind == EXTENSION:
        _check_extension("payload.extension_event_type", payload.get("extension_event_type"))
    elif kind not in EVENT_TYPES:
        _check_extension("event_type", kind)
    if kind == TRANSITION:
        check_text("message_id", event.get("message_id"))
    if kind == "StreamGap":
        for name in ("expected_seq_no", "observed_seq_no", "dropped_count"):
            value = payload.get(name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise invalid(f"payload.{name}", f"A StreamGap needs {name}: an integer from 0.", value)


def _check_extension(field: str, name: Any) -> None:
    if not isinstance(name, str) or not _EXTENSION_NAME.fullmatch(name):
        rule = (
            f"{field} must be one of {', '.join(EVENT_TYPES)}, or a lower-case name of three or more dotted parts."
            if field == "event_type"
            else f"{field} must be a lower-case name of three or more dotted parts: vendor.domain.event_name."
        )
        raise invalid(field, rule, name)
    if name.startswith("sdk."):
        raise invalid(field, "Names that begin with sdk. are reserved.", name)
