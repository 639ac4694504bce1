"""What a deployment counts of each tenant: requests above its rate, connections and subscriptions (S12, S15)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from millrace.runtime import bearer
from tests.support.aws_tables import client_for
from tests.unit.runtime import rights
from tests.unit.runtime.rights import DOORS
from tests.unit.runtime.test_rights import Hub
from tests.unit.runtime.test_tenant_limits import a_hub, answered

pytestmark = pytest.mark.slow


@pytest.fixture
def hub() -> Iterator[Hub]:
    with a_hub() as made:
        yield made


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
