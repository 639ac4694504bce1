"""The catalog's door on a real stack (C1, C2)."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

import pytest

from tests.e2e.conftest import Hub
from tests.e2e.lake import EVENT, done, sent
from tests.e2e.test_readme import ROOT


@pytest.fixture
def path() -> str:
    return f"/v1/catalog/domain-{uuid.uuid4().hex[:8]}/events"


def test_an_event_is_recorded_once_and_a_retry_finds_it(stack: Hub, path: str) -> None:
    named = {**EVENT, "idempotency_key": "orders-1"}
    first = done(sent(stack, "POST", path, named))
    assert (first["status"], first["sequence_position"], first["deduped"]) == ("committed", 1, False)
    again = done(sent(stack, "POST", path, {**named, "occurred_at": "2026-02-16T11:00:00Z", "source": "another"}))
    assert again == {**first, "deduped": True}


def test_a_key_is_made_as_the_contract_says(stack: Hub, path: str) -> None:
    """C2's check value."""
    event = {**EVENT, "event_type": "test.event", "payload": {"b": 2, "a": 1}}
    at = {"occurred_at": "2026-01-31T09:30:00Z", "source": "tests"}
    answer = done(sent(stack, "POST", path, {**event, **at}))
    assert answer["idempotency_key"] == "auto:37f9d56dcc90565872ce379baee39027"
    next_day = done(sent(stack, "POST", path, {**event, **at, "occurred_at": "2026-02-01T09:30:00Z"}))
    assert (next_day["deduped"], next_day["sequence_position"]) == (False, 2)


def test_protobuf_is_the_same_event_as_its_json(stack: Hub, path: str) -> None:
    """C10: recorded bytes through the gateway, which hands them on as base64."""
    recorded = ROOT / "tests/events"
    raw = base64.b64decode(json.loads((recorded / "catalog_protobuf.json").read_text())["body"])
    kind = {"content-type": "application/x-protobuf"}
    first = done(stack.http.post(path, content=raw, headers={**stack.headers(), **kind}))
    assert (first["status"], first["sequence_position"]) == ("committed", 1)
    event = json.loads(json.loads((recorded / "catalog.json").read_text())["body"])
    assert done(sent(stack, "POST", path, event)) == {**first, "deduped": True}
    for spoiled in (b"\xff\xfe\x00", raw[:-2], raw.replace(b"Struct", b"Strukt")):
        refused = stack.http.post(path, content=spoiled, headers={**stack.headers(), **kind})
        assert (refused.status_code, refused.json()["code"]) == (400, "bad_request"), refused.text


def test_each_event_of_a_batch_has_its_own_result(stack: Hub, path: str) -> None:
    events: list[Any] = [
        {**EVENT, "idempotency_key": "k1"},
        {**EVENT, "source": " "},
        {**EVENT, "idempotency_key": "k1"},
        {**EVENT, "idempotency_key": "k1", "payload": {"other": 1}},
        {**EVENT, "sequence_position": 5, "idempotency_key": "k2"},
        "no event",
        {**EVENT, "idempotency_key": "k3", "payload": {"text": "x" * 100_000}},
        {**EVENT, "idempotency_key": "k4", "event_version": 9},
    ]
    results = done(sent(stack, "POST", path, {"events": events}))["results"]
    told = [(one["status"], one.get("sequence_position"), one.get("deduped"), one.get("reason")) for one in results]
    assert told == [
        ("committed", 1, False, None),
        ("rejected", None, None, "validation_failed"),
        ("committed", 1, True, None),
        ("rejected", None, None, "conflict"),
        ("rejected", None, None, "validation_failed"),
        ("rejected", None, None, "validation_failed"),
        ("rejected", None, None, "too_large"),
        ("committed", 2, False, None),
    ]
    assert results[1]["errors"][0]["field"] == "source"
    assert results[4]["errors"] == [{"field": "sequence_position", "message": "is given by the ledger; leave it out"}]
    assert results[3]["idempotency_key"] == "k1"


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"event_type": ""}, 400, "event_type"),
        ({"event_version": 0}, 400, "event_version"),
        ({"event_version": True}, 400, "event_version"),
        ({"occurred_at": "yesterday"}, 400, "occurred_at"),
        ({"payload": None}, 400, "payload"),
        ({"idempotency_key": ""}, 400, "idempotency_key"),
        ({"sequence_position": 1}, 400, "sequence_position"),
        ({"more": 1}, 400, "more"),
        ({"payload": {"text": "x" * 100_000}}, 413, "event"),
    ],
)
def test_an_event_outside_its_envelope_is_refused_by_its_field(
    stack: Hub, path: str, change: dict[str, Any], status: int, field: str
) -> None:
    response = sent(stack, "POST", path, {**EVENT, **change})
    assert response.status_code == status, response.text
    assert response.json()["details"]["field"] == field


def test_another_content_under_a_used_key_is_a_conflict(stack: Hub, path: str) -> None:
    done(sent(stack, "POST", path, {**EVENT, "idempotency_key": "k"}))
    response = sent(stack, "POST", path, {**EVENT, "idempotency_key": "k", "event_version": 2})
    assert (response.status_code, response.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"partitions": ["catalog:other"]}, 403),
        ({"roles": ["consumer", "operator"]}, 403),
        ({"partitions": ["catalog:domain-*"]}, 200),
    ],
)
def test_a_producer_records_where_the_token_reaches(stack: Hub, path: str, claims: dict[str, Any], status: int) -> None:
    assert sent(stack, "POST", path, EVENT, **claims).status_code == status


def test_domains_and_tenants_are_kept_apart(stack: Hub, path: str) -> None:
    assert done(sent(stack, "POST", path, EVENT))["sequence_position"] == 1
    assert done(sent(stack, "POST", path, EVENT, tenant="another"))["deduped"] is False
    assert done(sent(stack, "POST", path.replace("/domain", "/other-domain"), EVENT))["deduped"] is False
