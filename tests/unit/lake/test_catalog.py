"""C1, C2, C10: the envelope, its generated keys, and how other contracts' events are wrapped in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.lake.domain.catalog import MAX_EVENT_BYTES, MAX_TEXT_BYTES, Envelope, check_event, draft, generate_key
from millrace.lake.domain.wrapping import wrap
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.errors import BadRequest, TooLarge
from millrace.ledger.domain.instants import moment, utc_text
from millrace.ledger.domain.names import Ledger, catalog_ledger, join_key
from millrace.ledger.domain.page import Record

TIME_MS = 1_769_900_000_123
EVENT = {
    "event_type": "materialization.completed",
    "event_version": 1,
    "idempotency_key": "k1",
    "occurred_at": "2026-01-31T09:30:00Z",
    "source": "tests",
    "payload": {"rows": 7},
}


def fields_refused(event: Any) -> list[str]:
    with pytest.raises(BadRequest) as refused:
        check_event(event)
    return [error["field"] for error in refused.value.details["errors"]]


def test_a_complete_event_becomes_an_envelope() -> None:
    """C1."""
    assert check_event({**EVENT, "trace_id": "t1"}) == Envelope(
        "materialization.completed", 1, "k1", "2026-01-31T09:30:00Z", "tests", b'{"rows":7}', "t1"
    )


def test_a_missing_key_is_made_of_what_was_sent_but_for_the_trace() -> None:
    """C2, with the contract's check value: the same request is the same event, the same job on another day is not."""
    checked = {"event_type": "test.event", "event_version": 1, "payload": {"b": 2, "a": 1}}
    at = {"occurred_at": "2026-01-31T09:30:00Z", "source": "tests"}
    assert generate_key({**checked, **at}) == "auto:37f9d56dcc90565872ce379baee39027"
    without = {name: value for name, value in EVENT.items() if name != "idempotency_key"}
    first, again = check_event(without), check_event({**without, "trace_id": "t2"})
    assert first.idempotency_key == again.idempotency_key
    assert draft(first).digest == draft(again).digest
    for change in ({"occurred_at": "2026-02-01T00:00:00Z"}, {"source": "elsewhere"}, {"payload": {"rows": 8}}):
        assert check_event({**without, **change}).idempotency_key != first.idempotency_key


@pytest.mark.parametrize("field", ["idempotency_key", "trace_id", "sequence_position"])
def test_an_optional_field_that_is_null_is_not_there(field: str) -> None:
    """C1"""
    without = {name: value for name, value in EVENT.items() if name != field}
    assert check_event({**without, field: None}) == check_event(without)


@pytest.mark.parametrize("field", ["event_type", "occurred_at", "source", "event_version", "payload"])
def test_every_required_field_is_required(field: str) -> None:
    """C1."""
    assert fields_refused({name: value for name, value in EVENT.items() if name != field}) == [field]
    assert fields_refused({**EVENT, field: None}) == [field]


@pytest.mark.parametrize("field", ["event_type", "idempotency_key", "occurred_at", "source", "trace_id"])
@pytest.mark.parametrize("value", ["", " \t", 5, True, {}, "é" * MAX_TEXT_BYTES])
def test_a_text_is_a_string_that_is_neither_blank_nor_too_long(field: str, value: Any) -> None:
    assert fields_refused({**EVENT, field: value}) == [field]


@pytest.mark.parametrize("version", [0, -1, 2**32, True, "1", 1.0, None])
def test_a_version_is_an_integer_from_one(version: Any) -> None:
    assert fields_refused({**EVENT, "event_version": version}) == ["event_version"]


@pytest.mark.parametrize("time", ["yesterday", "2026-01-31", "2026-01-31T09:30:00+01:00", "2026-02-30T00:00:00Z"])
def test_a_time_is_a_date_time_in_utc(time: str) -> None:
    assert fields_refused({**EVENT, "occurred_at": time}) == ["occurred_at"]


def test_all_errors_are_told_at_once_and_none_tells_a_value() -> None:
    refused = {**EVENT, "event_version": "s3cret", "source": 5, "sequence_position": 9, "extra": "s3cret"}
    with pytest.raises(BadRequest) as error:
        check_event(refused)
    named = [one["field"] for one in error.value.details["errors"]]
    assert named == ["source", "event_version", "extra", "sequence_position"]
    assert "s3cret" not in json.dumps(error.value.details) + error.value.message


@pytest.mark.parametrize("event", [None, [], "x", 5])
def test_only_an_object_is_an_event(event: Any) -> None:
    with pytest.raises(BadRequest, match="must be an object"):
        check_event(event)


def test_an_event_over_the_limit_is_refused_with_its_size() -> None:
    with pytest.raises(TooLarge) as error:
        draft(check_event({**EVENT, "payload": "x" * MAX_EVENT_BYTES}))
    assert error.value.details["max_bytes"] == MAX_EVENT_BYTES < error.value.details["actual_bytes"]


def test_a_retry_may_tell_another_time_source_or_trace_but_no_other_payload() -> None:
    kept = draft(check_event(EVENT)).digest
    assert draft(check_event({**EVENT, "source": "b", "trace_id": "t"})).digest == kept
    assert draft(check_event({**EVENT, "payload": {"rows": 8}})).digest != kept
    assert draft(check_event({**EVENT, "event_version": 2})).digest != kept


@given(st.recursive(st.integers() | st.text() | st.booleans(), lambda inner: st.dictionaries(st.text(), inner)))
def test_what_is_committed_is_canonical_and_comes_back_in_its_envelope(payload: Any) -> None:
    envelope = check_event({**EVENT, "payload": payload, "trace_id": "t"})
    drafted = draft(envelope)
    assert drafted.body == canonical(json.loads(drafted.body))
    record = Record(drafted.id, drafted.digest, drafted.body)
    stored = wrap(catalog_ledger("acme", "orders").name, record, 12, TIME_MS)
    assert stored == Envelope(**{**_fields(envelope), "sequence_position": 12})


def _fields(envelope: Envelope) -> dict[str, Any]:
    return {name: getattr(envelope, name) for name in Envelope.__slots__}


def wrapped(ledger: str, body: Any, position: int = 3) -> Envelope:
    return wrap(ledger, Record("e1", b"", canonical(body)), position, TIME_MS)


COMMITTED = utc_text(TIME_MS * 1_000_000)


def test_a_sync_event_keeps_its_schema_version_and_its_client_s_time() -> None:
    """C1."""
    ledger = Ledger.of("sync", "acme", "demo").name
    body = {"event": {"type": "set", "payload": {}, "schemaVersion": 4}, "meta": {"clientTs": 1_700_000_000_000}}
    envelope = wrapped(ledger, body)
    assert (envelope.event_type, envelope.event_version) == ("sync.set", 4)
    assert (envelope.idempotency_key, envelope.sequence_position) == ("e1", 3)
    assert envelope.source == "millrace/sync/demo"
    assert envelope.occurred_at == "2023-11-14T22:13:20Z"
    assert json.loads(envelope.payload) == body
    assert wrapped(ledger, {"event": {"type": "set", "payload": 1}}).occurred_at == COMMITTED
    assert wrapped(ledger, {"event": {"type": "set", "payload": 1, "schemaVersion": "x"}}).event_version == 1


def test_a_realtime_event_keeps_its_instant_to_the_nanosecond() -> None:
    """C1."""
    body = {"type": "call.started", "ts": "2026-02-16T10:00:00.000000001+00:00", "eventId": "e1"}
    envelope = wrapped(join_key("realtime", "acme", "s1"), body)
    assert (envelope.event_type, envelope.event_version) == ("realtime.call.started", 1)
    assert envelope.occurred_at == "2026-02-16T10:00:00.000000001Z"


def test_a_stream_event_keeps_its_contract_version_and_trace() -> None:
    """C1."""
    body = {"event_type": "RuntimeStarted", "contract_version": 2, "ts_ms": 1_700_000_000_001, "trace_id": "hmac:0"}
    envelope = wrapped(Ledger.of("streams", "acme", "r1", "main").name, body)
    assert (envelope.event_type, envelope.event_version, envelope.trace_id) == ("streams.RuntimeStarted", 2, "hmac:0")
    assert envelope.source == "millrace/streams/r1/main"
    assert envelope.occurred_at == "2023-11-14T22:13:20.001Z"


@pytest.mark.parametrize(
    ("timestamp", "occurred"),
    [("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"), ("soon", COMMITTED), (None, COMMITTED)],
)
def test_a_journal_s_event_tells_its_time_if_it_can(timestamp: Any, occurred: str) -> None:
    body = {"event_type": "WPStatusChanged", "event_id": "e1", "timestamp": timestamp}
    envelope = wrapped(Ledger.of("delivery", "acme", "team").name, body)
    assert (envelope.event_type, envelope.occurred_at) == ("delivery.WPStatusChanged", occurred)


def test_an_audit_row_s_action_is_its_type() -> None:
    envelope = wrapped(Ledger.of("audit", "acme").name, {"action": "grant.read", "ts_ms": 0, "who": "o1"})
    assert (envelope.event_type, envelope.source) == ("audit.grant.read", "millrace/audit")
    assert envelope.occurred_at == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "body", [{}, [], {"event": 5, "meta": 5}, {"event": {"type": " "}}, {"type": 5, "ts_ms": 1e300}]
)
@pytest.mark.parametrize("contract", ["sync", "realtime", "streams", "delivery", "audit", "later"])
def test_whatever_was_committed_can_be_wrapped(contract: str, body: Any) -> None:
    """C1: the required fields are never blank."""
    envelope = wrapped(Ledger.of(contract, "acme", "x").name, body)
    assert envelope.event_type == f"{contract}.event"
    assert (envelope.event_version, envelope.occurred_at) == (1, COMMITTED)


def test_a_pruned_event_cannot_be_wrapped() -> None:
    with pytest.raises(ValueError, match=r"position 3 .* pruned"):
        wrap("sync#acme#demo", Record("e1", b"", None), 3, TIME_MS)


@given(st.integers(-62_135_596_800_000_000_000, 253_402_300_799_999_999_999))
def test_an_instant_survives_its_text(nanoseconds: int) -> None:
    assert moment(utc_text(nanoseconds)) == nanoseconds
