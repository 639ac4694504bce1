"""Every door that takes a token counts its requests by tenant, and refuses in its contract's words (S12, S15, T12)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from millrace.ledger.application.limit_requests import TooManyRequests
from millrace.ledger.domain.rates import Rate
from millrace.live import wiring as live_wiring
from millrace.live.adapters.memory import MemoryWire
from millrace.runtime import bearer
from tests.unit.runtime import rights
from tests.unit.runtime.rights import DOORS, MESSAGES, OPEN, Door, Message, claims_for
from tests.unit.runtime.test_handlers import deployment, function, invoke
from tests.unit.runtime.test_rights import FUNCTIONS, Hub

pytestmark = pytest.mark.slow

REALTIME = ("/v1/realtime/",)
STREAMS = ("/v1/runtimes/", "/v1/audit")
OPERATORS = ("/v1/runtimes/{runtime_id}/degraded", "/v1/runtimes/{runtime_id}/negotiations")
"""Doors below a contract's path that speak as all doors of operators do."""


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    """One for all tests that are refused: they leave nothing behind."""
    with a_hub() as made:
        yield made


@contextmanager
def a_hub() -> Iterator[Hub]:
    with pytest.MonkeyPatch.context() as patched, deployment(patched):
        patched.setattr(bearer, "tokens", rights.verifier)
        wire = MemoryWire()
        patched.setattr(live_wiring, "wire", lambda: wire)
        loaded = {name: function(name) for name in {*FUNCTIONS.values(), "socket"}}
        patched.setattr("tests.unit.runtime.test_handlers.function", loaded.__getitem__)
        yield Hub(wire, connections=itertools.count())


@pytest.fixture
def refusing(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every tenant is over its rate; who was counted."""
    counted: list[str] = []

    def refuse(tenant: str) -> None:
        counted.append(tenant)
        raise TooManyRequests(2_400, Rate(500, 1000))

    monkeypatch.setattr(bearer, "request_limit", lambda: refuse)
    return counted


def answered(hub: Hub, door: Door) -> dict[str, Any]:
    event = {**door.event, "headers": {**door.event["headers"]}}
    event["headers"] = {name: value for name, value in event["headers"].items() if name.lower() != "authorization"}
    event["headers"]["authorization"] = f"Bearer {rights.token(**claims_for(door))}"
    answer: dict[str, Any] = invoke(FUNCTIONS[door.route], event)
    return answer


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.route)
def test_a_tenant_over_its_rate_is_refused_at_every_door_in_the_words_of_its_contract(
    hub: Hub, refusing: list[str], door: Door
) -> None:
    answer = answered(hub, door)
    assert answer["statusCode"] == 429
    assert answer["headers"]["retry-after"] == "3", "whole seconds, never too early"
    assert refusing == [rights.TENANT], "each request is counted once"
    body, path = json.loads(answer["body"]), door.route.partition(" ")[2]
    if path.startswith(STREAMS) and path not in OPERATORS:
        assert body["machine_code"] == "SDK_SECURITY_RATE_LIMITED"
        assert body["category"] == "Security"
        assert body["retryable"] is True
        return
    assert body["code"] == "rate_limited"
    assert body["details"] == {"requests_per_second": 500}
    if path.startswith(REALTIME):
        assert (body["ok"], body["retryable"], body["errors"]) == (False, True, [])


@pytest.mark.parametrize("route", OPEN)
def test_a_door_that_needs_no_token_counts_nothing(hub: Hub, refusing: list[str], route: str) -> None:
    event = {"routeKey": route, "requestContext": {"http": {"method": route.partition(" ")[0]}}, "headers": {}}
    assert invoke(FUNCTIONS[route], event)["statusCode"] < 429
    assert refusing == []


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.kind)
def test_a_message_of_a_tenant_over_its_rate_is_rate_limited_and_its_connection_stays(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, message: Message
) -> None:
    claims = claims_for(message)
    connection = hub.open() if message.kind == "connect" else hub.connected(**claims)
    counted: list[str] = []

    def refuse(tenant: str) -> None:
        counted.append(tenant)
        raise TooManyRequests(2_400, Rate(500, 1000))

    monkeypatch.setattr(bearer, "request_limit", lambda: refuse)
    payload = dict(message.payload)
    if message.kind == "connect":
        payload["token"] = rights.token(**claims)
    heard = hub.say(connection, message.kind, payload)
    if message.kind == "disconnect":
        assert (heard, counted) == ([], []), "whoever goes is not kept"
        return
    (refusal,) = heard
    assert refusal["payload"]["code"] == "rate_limited"
    assert refusal["payload"]["details"]["retry_after_ms"] == 2_400
    assert counted == [rights.TENANT]
    assert connection not in hub.wire.closed
