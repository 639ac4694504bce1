"""Every door that takes a token counts its requests by tenant, and refuses in its contract's words (S12, S15, T12)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from millrace.ledger.application.limit_requests import TooManyRequests
from millrace.ledger.domain.rates import Rate
from millrace.live import wiring as live_wiring
from millrace.live.adapters.memory import MemoryWire
from millrace.runtime import bearer
from tests.support.aws_tables import client_for
from tests.unit.runtime import rights
from tests.unit.runtime.rights import DOORS, MESSAGES, OPEN, Door, Message, claims_for
from tests.unit.runtime.test_handlers import deployment, function, invoke
from tests.unit.runtime.test_rights import FUNCTIONS, Hub

REALTIME = ("/v1/realtime/",)
STREAMS = ("/v1/runtimes/", "/v1/audit")
OPERATORS = ("/v1/runtimes/{runtime_id}/degraded",)
"""Doors below a contract's path that speak as all doors of operators do."""


@pytest.fixture
def hub() -> Iterator[Hub]:
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


def test_with_a_rate_of_its_own_a_deployment_refuses_what_is_above_it(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what another instance let in: the count is shared."""
    monkeypatch.setenv("TENANT_REQUESTS", "1")
    monkeypatch.setenv("TENANT_REQUEST_BURST", "3")
    door = next(door for door in DOORS if door.route.endswith("/sync"))
    statuses = []
    for _ in range(6):
        bearer.request_limit.cache_clear()  # another instance
        statuses.append(answered(hub, door)["statusCode"])
        statuses.append(answered(hub, door)["statusCode"])
    assert statuses[:3] == [200, 200, 200]
    assert statuses[-1] == 429
    assert statuses.count(200) <= 3 + 6, "each instance finds out with its first request"


def test_by_default_nobody_writes_for_a_few_requests(hub: Hub) -> None:
    door = next(door for door in DOORS if door.route.endswith("/sync"))
    for _ in range(5):
        assert answered(hub, door)["statusCode"] == 200
    client = client_for(None)
    for name in client.list_tables()["TableNames"]:
        keys = [json.dumps(item) for item in client.scan(TableName=name)["Items"]]
        assert not [key for key in keys if "rate#" in key]


def test_a_tenant_has_only_so_many_connections_and_subscriptions(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """S15: rate_limited, and what ends makes room."""
    monkeypatch.setenv("TENANT_CONNECTIONS", "2")
    monkeypatch.setenv("TENANT_SUBSCRIPTIONS", "2")
    claims: dict[str, Any] = {"projects": [rights.PROJECT], "partitions": ["*"], "roles": ["consumer"]}
    first, second = hub.connected(**claims), hub.connected(**claims)
    third = hub.open()
    (refused,) = hub.connect(third, rights.token(**claims))
    assert refused["payload"]["code"] == "rate_limited"
    assert refused["payload"]["details"]["max_connections"] == 2
    assert refused["payload"]["details"]["retry_after_ms"] > 0
    assert hub.connected(**{**claims, "tenant": "another"}), "its own affair"
    hub._socket("socket_disconnect", first)
    (connected,) = hub.connect(third, rights.token(**claims))
    assert connected["type"] == "connected"

    asked = {"kind": "session", "session_id": "sess-1"}
    ids = [hub.say(second, "subscribe", asked)[0]["payload"]["subscription_id"] for _ in range(2)]
    (refused,) = hub.say(third, "subscribe", asked)
    assert refused["payload"]["details"]["max_subscriptions"] == 2
    hub.say(second, "sync", {"since_committed_id": 0})
    hub.say(second, "unsubscribe", {"subscription_id": ids[0]})
    assert hub.say(third, "subscribe", asked)[0]["type"] == "subscribed"
    hub._socket("socket_disconnect", second)
    assert hub.say(third, "subscribe", asked)[0]["type"] == "subscribed"
