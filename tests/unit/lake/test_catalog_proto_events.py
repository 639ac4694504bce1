"""C10: a protobuf event is the same event as its JSON, to the byte; what cannot be one is refused by its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf import duration_pb2, json_format, struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from millrace.lake.adapters.catalog_proto import _CatalogEvent, event_of
from millrace.lake.domain.catalog import check_event, draft
from millrace.ledger.domain import strict_json
from millrace.ledger.domain.errors import BadRequest

EVENT: dict[str, Any] = {
    "event_type": "materialization.completed",
    "event_version": 3,
    "occurred_at": "2026-02-16T10:00:00Z",
    "source": "warehouse",
    "payload": {"table": "orders", "rows": 17},
}


def as_proto(event: dict[str, Any]) -> Any:
    fields = {name: value for name, value in event.items() if name not in ("occurred_at", "payload")}
    message: Any = _CatalogEvent(**fields)
    if "occurred_at" in event:
        message.occurred_at.FromJsonString(event["occurred_at"])
    if "payload" in event:
        message.payload.Pack(json_format.ParseDict(event["payload"], struct_pb2.Struct(), max_recursion_depth=200))
    return message


def read(event: dict[str, Any]) -> dict[str, Any]:
    return event_of(as_proto(event).SerializeToString())


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
instants = st.sampled_from(["", ".5", ".25", ".000001", ".123456789"]).map(
    lambda digits: f"2026-02-16T10:00:00{digits}Z"
)


@given(st.dictionaries(texts, values, max_size=5), instants, st.none() | st.just("k1"), st.none() | st.just("t1"))
def test_any_payload_gives_the_key_and_the_bytes_of_its_json(
    payload: dict[str, Any], occurred_at: str, key: str | None, trace: str | None
) -> None:
    """C2, C10. The JSON is the text that a caller would send, read by the JSON door's own reader."""
    optional = {"idempotency_key": key, "trace_id": trace}
    event = {**EVENT, "payload": payload, **{name: value for name, value in optional.items() if value is not None}}
    message = as_proto({**event, "occurred_at": occurred_at})
    event["occurred_at"] = message.occurred_at.ToJsonString()
    from_json = check_event(strict_json.parse(json.dumps(event).encode(), 1_000_000))
    from_proto = check_event(event_of(message.SerializeToString()))
    assert draft(from_proto) == draft(from_json)


@pytest.mark.parametrize("number", [0, -0.0, 1, -1, 2**53, -(2**53), 1.5, 1e300, 5e-324, 1e15, 123456789012345680000])
def test_a_number_is_the_same_number_as_in_json(number: float) -> None:
    (value,) = read({**EVENT, "payload": {"n": number}})["payload"].values()
    sent = strict_json.parse(json.dumps({"n": float(number)}).encode(), 1_000)["n"]
    assert draft(check_event({**EVENT, "payload": {"n": value}})) == draft(
        check_event({**EVENT, "payload": {"n": sent}})
    )
    assert type(value) is (int if abs(number) <= 2**53 and float(number).is_integer() else float)


@pytest.mark.parametrize(
    ("time", "text"),
    [
        ("2026-02-16T10:00:00Z", "2026-02-16T10:00:00Z"),
        ("2026-02-16T10:00:00.5Z", "2026-02-16T10:00:00.500Z"),
        ("2026-02-16T12:00:00.000001+02:00", "2026-02-16T10:00:00.000001Z"),
        ("0001-01-01T00:00:00.000000001Z", "0001-01-01T00:00:00.000000001Z"),
    ],
)
def test_a_time_is_written_as_protobuf_writes_it_in_json(time: str, text: str) -> None:
    assert read({**EVENT, "occurred_at": time})["occurred_at"] == text


def test_what_is_not_set_is_left_out_and_named_by_the_rules_of_the_envelope() -> None:
    with pytest.raises(BadRequest) as refused:
        check_event(event_of(b""))
    named = {error["field"] for error in refused.value.details["errors"]}
    assert named == {"event_type", "event_version", "occurred_at", "source", "payload"}


def test_a_key_of_the_caller_s_is_kept_and_an_empty_one_is_none() -> None:
    assert check_event(read({**EVENT, "idempotency_key": "mine"})).idempotency_key == "mine"
    assert check_event(read({**EVENT, "idempotency_key": ""})).idempotency_key.startswith("auto:")


@pytest.mark.parametrize(
    ("changes", "field"), [({"sequence_position": 0}, "sequence_position"), ({"trace_id": ""}, "trace_id")]
)
def test_an_optional_field_counts_when_it_is_there_whatever_it_says(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check_event(read({**EVENT, **changes}))
    assert field in {error["field"] for error in refused.value.details["errors"]}


def changed(change: Callable[[Any], Any]) -> bytes:
    message = as_proto(EVENT)
    change(message)
    raw: bytes = message.SerializeToString()
    return raw


def payload(value: struct_pb2.Value) -> bytes:
    return changed(lambda message: message.payload.Pack(struct_pb2.Struct(fields={"x": value})))


GOOD = changed(lambda _: None)
DEEP = {"a": 1}
for _ in range(60):
    DEEP = {"a": DEEP}  # type: ignore[dict-item]
BAD = {
    "no protobuf": (b"\xff\xff", "body", "not a CatalogEvent"),
    "JSON": (json.dumps(EVENT).encode(), "body", "CatalogEvent"),
    "cut off": (GOOD[:-3], "body", "not a CatalogEvent"),
    "a field of no contract": (GOOD + b"\x48\x01", "body", "no field 9"),
    "a wrong wire type": (b"\x08\x01", "body", "no field 1"),
    "text that is no UTF-8": (b"\x0a\x01\xff" + GOOD, "body", "not a CatalogEvent"),
    "another type in the Any": (
        changed(lambda message: message.payload.Pack(duration_pb2.Duration(seconds=1))),
        "payload",
        "not of google.protobuf.Duration",
    ),
    "an Any of nothing": (changed(lambda message: message.payload.Clear()), "payload", "not of nothing"),
    "an Any whose bytes are cut off": (
        changed(lambda message: setattr(message.payload, "value", message.payload.value[:-1])),
        "payload",
        "not a google.protobuf.Struct",
    ),
    "a payload too deep": (as_proto({**EVENT, "payload": DEEP}).SerializeToString(), "payload", "nests deeper"),
    "a value without a kind": (payload(struct_pb2.Value()), "payload", "has no kind"),
    "NaN": (payload(struct_pb2.Value(number_value=float("nan"))), "payload", "NaN"),
    "an infinity": (payload(struct_pb2.Value(number_value=float("-inf"))), "payload", "infinite"),
    "a field of no Struct": (
        changed(lambda message: setattr(message.payload, "value", message.payload.value + b"\x48\x01")),
        "payload",
        "does not have",
    ),
    "a time out of range": (
        changed(lambda message: setattr(message.occurred_at, "seconds", 10**12)),
        "occurred_at",
        "years 1 to 9999",
    ),
    "nanoseconds out of range": (
        changed(lambda message: setattr(message.occurred_at, "nanos", -1)),
        "occurred_at",
        "nanos",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_an_event_is_refused_by_its_place(name: str) -> None:
    raw, field, message = BAD[name]
    with pytest.raises(BadRequest, match=message) as refused:
        event_of(raw)
    assert refused.value.details["field"] == field


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_refusal(raw: bytes) -> None:
    with suppress(BadRequest):
        assert event_of(raw).keys() >= {"event_type", "payload"}


@given(st.data())
def test_no_damage_of_a_good_event_raises_anything_but_a_refusal(data: st.DataObject) -> None:
    raw = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(BadRequest):
        assert check_event(event_of(bytes(raw))).payload
