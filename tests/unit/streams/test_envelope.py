"""T1, T2, T10: which events may enter a stream, and how those are refused that may not."""

from __future__ import annotations

import json
import traceback
from typing import Any

import pytest

from millrace.ledger.domain.canonical import canonical, digest
from millrace.streams.domain.envelope import EVENT_TYPES, MAX_STORED_BYTES, REQUIRED, SEVERITIES, Emission, check_event
from millrace.streams.domain.errors import EventTooLarge, InvalidArgument, MaxExtensionKeysExceeded, SdkError
from millrace.streams.domain.negotiate import negotiate
from millrace.streams.domain.privacy import Policy, hasher
from tests.unit.streams.hub import event, odd, transition

CANARY = "canary-c0ffee"


def check(sent: Any, stream_id: str = "s", **limits: int) -> Emission:
    negotiated = negotiate({"supported_contract_versions": [2], "limits": limits})
    return check_event(sent, "r1", stream_id, negotiated, Policy.of({}), hasher(b"key"))


def without(name: str) -> dict[str, Any]:
    sent = event("e")
    del sent[name]
    return sent


def test_an_event_passes_with_every_field_the_contract_names() -> None:
    """T1."""
    sent = event(
        "e",
        runtime_id="r1",
        stream_id="s",
        operation_id="o",
        message_id="m",
        peer_id=None,
        correlation_id=None,
        trace_id=None,
        extensions={"vendor.key": [1, {"n": None}]},
        payload={"any": {"thing": [True]}},
    )
    emission = check(sent)
    given = {name: value for name, value in sent.items() if value is not None}
    assert emission.event == given
    assert emission.draft.id == "e"
    assert json.loads(emission.draft.body) == given


OPTIONAL = (
    *("operation_id", "message_id", "peer_id", "correlation_id", "trace_id", "extensions"),
    *("runtime_id", "stream_id", "seq_no"),
)


@pytest.mark.parametrize("name", OPTIONAL)
def test_an_optional_field_that_is_null_counts_as_left_out(name: str) -> None:
    """T1: the same draft, so the same event."""
    assert check(event("e", **{name: None})).draft == check(event("e")).draft


def test_a_required_field_that_is_null_is_refused_by_name() -> None:
    """T1."""
    for name in REQUIRED:
        with pytest.raises(InvalidArgument) as refusal:
            check({**event("e"), name: None})
        assert refusal.value.details["field"] == name


@pytest.mark.parametrize("key", ["a", "0", "_", ".", "-", "vendor.key_1-x", "k" * 64])
def test_extension_keys_of_the_published_form_are_taken(key: str) -> None:
    """T1: `[a-z0-9_.-]{1,64}`; what stands below a key may be called as its sender likes."""
    assert check(event("e", extensions={key: {"Any Key": 1}})).event["extensions"] == {key: {"Any Key": 1}}


def test_runtime_and_stream_are_those_of_the_path() -> None:
    """T1: left out, they are put in; so both ways of sending are one content."""
    plain, full = check(event("e")), check(event("e", runtime_id="r1", stream_id="s"))
    assert plain.draft == full.draft
    assert (plain.event["runtime_id"], plain.event["stream_id"]) == ("r1", "s")


def test_sensitive_fields_are_hashed_before_anything_is_stored_and_secrets_gone() -> None:
    """P2, P3: the digest covers neither, so a retry under another peer's name is the same event."""
    sent = event("e", peer_id="bob", payload={"auth_token": CANARY, "to": "up"}, auth_token=CANARY)
    emission = check(sent)
    assert emission.event["peer_id"] == hasher(b"key")("bob")
    assert CANARY not in emission.draft.body.decode()
    assert emission.raw == [("peer_id", "peerid", "bob")]
    assert emission.draft.digest == check(event("e", peer_id="alice")).draft.digest == check(event("e")).draft.digest
    assert check(event("e", payload={"to": "down"})).draft.digest != emission.draft.digest
    assert emission.draft.digest == digest(canonical({**event("e"), "runtime_id": "r1", "stream_id": "s"}))


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_each_of_the_twelve_types_is_taken(kind: str) -> None:
    """T2."""
    payloads: dict[str, dict[str, Any]] = {
        "ExtensionEvent": {"extension_event_type": "acme.radio.tuned"},
        "StreamGap": {"expected_seq_no": 0, "observed_seq_no": 3, "dropped_count": 3},
    }
    assert len(EVENT_TYPES) == 12
    assert check(event("e", kind, message_id="m", payload=payloads.get(kind, {}))).is_transition == (
        kind == "DeliveryStateTransition"
    )


@pytest.mark.parametrize("name", ["acme.radio.tuned", "a.b.c.d", "a-1.b_2.c3", "sdkx.y.z", "acme.sdk.x"])
def test_an_extension_event_passes_through_untouched(name: str) -> None:
    """T2: in both of its forms, known to nobody or not."""
    payload = {"n": 1, "deep": [{"x": "Ünï✓"}]}
    assert check(event("e", name, payload=payload)).event["payload"] == payload
    named = {**payload, "extension_event_type": name}
    assert check(event("e", "ExtensionEvent", payload=named)).event["payload"] == named


@pytest.mark.parametrize("severity", SEVERITIES)
def test_each_severity_is_taken(severity: str) -> None:
    """T1."""
    assert check(event("e", severity=severity)).event["severity"] == severity


BAD: list[tuple[Any, str]] = [
    (None, "event"),
    (CANARY, "event"),
    ([event("e")], "event"),
    (17, "event"),
    *((without(name), name) for name in event("e")),
    (event("e", seq_no=1), "seq_no"),
    (event("e", **{CANARY[:6]: CANARY}), CANARY[:6]),
    (event("e", Payload={"x": CANARY}), "Payload"),
    (event("e", runtime_id=CANARY), "runtime_id"),
    (event("e", stream_id="S"), "stream_id"),
    *((event(bad), "event_id") for bad in odd("", " \t", "x" * 257, "ä" * 129, None, 7, True, [CANARY], {"a": CANARY})),
    *((event(bad), "event_id") for bad in odd("gap-0", "gap-41")),
    *((event("e", source_component=bad), "source_component") for bad in odd("", None, 1, CANARY * 40)),
    *(
        (event("e", **{name: bad}), name)
        for name in ("operation_id", "message_id", "peer_id", "correlation_id", "trace_id")
        for bad in odd("", " ", 5, False, [CANARY], CANARY * 40)
    ),
    *((event("e", ts_ms=bad), "ts_ms") for bad in odd(None, True, -1, 2**53, 1.5, "1", [CANARY])),
    *((event("e", severity=bad), "severity") for bad in odd("INFO", "warning", CANARY, None, 1, ["info"], {})),
    *((event("e", contract_version=bad), "contract_version") for bad in odd(1, 3, "2", None, True, [2], CANARY)),
    *((event("e", payload=bad), "payload") for bad in odd(None, [], CANARY, 1, [{"to": CANARY}])),
    *((event("e", extensions=bad), "extensions") for bad in odd([], CANARY, 1, True)),
    *(
        (event("e", extensions={"good": 1, bad: CANARY}), f"extensions.{bad[:64]}")
        for bad in ("", "A", "vendorKey", "a b", "a/b", "ü", "a:b", "k" * 65)
    ),
    *(
        (event("e", bad), "event_type")
        for bad in odd("", None, 3, ["StreamGap"], "runtimestatechanged", "Other", CANARY)
    ),
    *((event("e", bad), "event_type") for bad in odd("a.b", "a..b", ".a.b", "a.b.", "a.b.c ", "a.ü.c", "a/b.c.d")),
    *((event("e", bad), "event_type") for bad in odd("sdk.marker.created", "SDK.x.y", "sdk.a.b.c", "x." * 130 + "y")),
    *((event("e", bad), "event_type") for bad in odd("Acme.radio.tuned", "acme.radio.Tuned", "acme.Radio.tuned")),
    *(
        (event("e", "ExtensionEvent", payload=bad), "payload.extension_event_type")
        for bad in odd(
            {},
            {"extension_event_type": None},
            {"extension_event_type": [CANARY]},
            {"extension_event_type": "HealthSnapshot"},
            {"extension_event_type": "sdk.marker.moved"},
            {"extension_event_type": "acme.radio.Tuned"},
            {"extension_event_type": CANARY, "x": CANARY},
        )
    ),
    *(
        (
            event("e", "StreamGap", payload={"expected_seq_no": 1, "observed_seq_no": 2, "dropped_count": 1, **bad}),
            f,
        )
        for bad, f in (
            ({"expected_seq_no": -1}, "payload.expected_seq_no"),
            ({"observed_seq_no": CANARY}, "payload.observed_seq_no"),
            ({"dropped_count": True}, "payload.dropped_count"),
        )
    ),
    (event("e", "StreamGap", payload={"x": CANARY}), "payload.expected_seq_no"),
    (event("e", "DeliveryStateTransition"), "message_id"),
    (transition("e", "", "sent"), "message_id"),
]


@pytest.mark.parametrize(("sent", "field"), BAD)
def test_a_bad_event_is_refused_by_its_field_and_no_value_is_told(sent: Any, field: str) -> None:
    """T1, T2, T12, P2: neither in the error's body nor in what a trace would show."""
    if isinstance(sent, dict) and isinstance(sent.get("payload"), dict):
        sent = {**sent, "payload": {**sent["payload"], "note": CANARY, "auth_token": CANARY}}
    with pytest.raises(InvalidArgument) as refusal:
        check(sent)
    assert refusal.value.details["field"] == field
    assert refusal.value.body()["machine_code"] == "SDK_VALIDATION_INVALID_ARGUMENT"
    assert CANARY not in json.dumps(refusal.value.body())
    assert CANARY not in "".join(traceback.format_exception_only(refusal.value))


def test_nobody_else_writes_the_markers_stream() -> None:
    """M5."""
    with pytest.raises(InvalidArgument) as refusal:
        check(event("e"), "markers")
    assert refusal.value.details["field"] == "stream_id"


def test_texts_go_up_to_their_limit() -> None:
    """T1: 256 bytes of UTF-8."""
    for text in ("x" * 256, "ä" * 128):
        assert check(event(text, source_component=text, operation_id=text)).draft.id == text
    assert check(event("e", ts_ms=2**53 - 1)).event["ts_ms"] == 2**53 - 1
    assert check(event("e", ts_ms=0)).event["ts_ms"] == 0
    for near in ("gap", "gap-", "gap-x", "gap-1x", "Gap-1", "xgap-1"):
        assert check(event(near)).draft.id == near


def payload_of(size: int, filler: str = "x") -> dict[str, Any]:
    """A payload whose compact UTF-8 JSON has exactly this many bytes."""
    frame = len(b'{"n":"","pad":""}')
    width = len(filler.encode())
    pad = (size - frame) // width
    return {"n": "y" * (size - frame - pad * width), "pad": filler * pad}


@pytest.mark.parametrize("filler", ["x", "ü", "✓", "🔑"])
@pytest.mark.parametrize("limit", [256, 8_192, 65_536])
def test_a_payload_may_have_exactly_the_limit(limit: int, filler: str) -> None:
    """T10: measured on the compact UTF-8 JSON of `payload`."""
    at_limit = payload_of(limit, filler)
    assert len(json.dumps(at_limit, ensure_ascii=False, separators=(",", ":")).encode()) == limit
    assert check(event("e", payload=at_limit), max_event_bytes=limit).event["payload"] == at_limit
    with pytest.raises(EventTooLarge) as refusal:
        check(event("e", payload=payload_of(limit + 1, filler)), max_event_bytes=limit)
    assert refusal.value.status == 413
    assert refusal.value.details == {"field": "payload", "max_event_bytes": limit, "actual_bytes": limit + 1}


def test_a_secret_counts_toward_the_size_as_it_was_sent() -> None:
    """T10: the caller knows that size."""
    with pytest.raises(EventTooLarge) as refusal:
        check(event("e", payload={"auth_token": CANARY * 40}), max_event_bytes=256)
    assert CANARY not in json.dumps(refusal.value.body())


def test_a_too_large_payload_is_told_before_what_else_is_wrong_with_the_event() -> None:
    """T10: so that a caller that splits payloads learns it whatever else is new to it."""
    with pytest.raises(EventTooLarge):
        check(event("e", "Other", payload=payload_of(257)), max_event_bytes=256)


@pytest.mark.parametrize("limit", [0, 1, 32])
def test_extensions_may_have_exactly_as_many_keys_as_the_limit(limit: int) -> None:
    """T10."""
    assert check(event("e", extensions={f"k{n}": n for n in range(limit)}), max_extension_keys=limit).draft.id == "e"
    with pytest.raises(MaxExtensionKeysExceeded) as refusal:
        check(event("e", extensions={f"k{n}": CANARY for n in range(limit + 1)}), max_extension_keys=limit)
    assert refusal.value.status == 400
    assert refusal.value.details == {"field": "extensions", "max_extension_keys": limit, "actual_keys": limit + 1}


def test_a_whole_event_fits_into_a_socket_message_or_is_refused() -> None:
    """T10: extensions have no limit of their own in bytes, the event has: 96 KiB of canonical JSON as stored."""
    around = len(check(event("e", extensions={"pad": ""})).draft.body)
    room = MAX_STORED_BYTES - around
    assert len(check(event("e", extensions={"pad": "x" * room})).draft.body) == MAX_STORED_BYTES
    with pytest.raises(EventTooLarge) as refusal:
        check(event("e", extensions={"pad": "x" * (room + 1)}))
    stored = {"field": "event", "max_event_bytes": MAX_STORED_BYTES, "actual_bytes": MAX_STORED_BYTES + 1}
    assert refusal.value.details == stored


def test_every_refusal_is_one_of_the_contracts_errors() -> None:
    """T12: with all six fields."""
    for sent, _ in BAD:
        with pytest.raises(SdkError) as refusal:
            check(sent)
        said = {"machine_code", "category", "retryable", "is_user_actionable", "message", "details"}
        assert refusal.value.body().keys() == said
        assert (refusal.value.body()["category"], refusal.value.retryable) == ("Validation", False)
