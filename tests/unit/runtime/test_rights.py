"""Every route and every message, asked for without one of the rights it needs: refused, and nothing is changed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest

from millrace.live import wiring as live_wiring
from millrace.live.adapters.memory import MemoryWire
from millrace.runtime import bearer
from tests.support.aws_tables import client_for
from tests.unit.runtime import rights
from tests.unit.runtime.rights import DOORS, MESSAGES, OPEN, Door, Message, claims_for, elsewhere_than, lacking_a_role
from tests.unit.runtime.test_handlers import deployment, function, invoke, sample
from tests.unit.runtime.test_handlers_delivery import deliver, woken
from tests.unit.template.test_template import routes_of

FUNCTIONS = {
    route: integration["IntegrationUri"]["Ref"].removesuffix("FunctionAliaslive").lower()
    for route, integration in routes_of("HttpApi")
}
UNKNOWN = (401, {"auth_failed", "SDK_SECURITY_AUTH_REQUIRED"})
REFUSED = (403, {"forbidden", "SDK_SECURITY_AUTHZ_DENIED"})


@dataclass
class Hub:
    """Holds the first tenant's data. Requests and messages go through the functions' own handlers."""

    wire: MemoryWire
    given_out: dict[str, str] = field(default_factory=dict)
    connections: Iterator[int] = field(default_factory=itertools.count)

    def ask(self, door: Door, token: str | None) -> tuple[int, Any]:
        event = self.filled_in(door.event)
        event["headers"] = {name: value for name, value in event["headers"].items() if name.lower() != "authorization"}
        if token is not None:
            event["headers"]["authorization"] = f"Bearer {token}"
        answered = invoke(FUNCTIONS[door.route], event)
        return answered["statusCode"], json.loads(answered["body"])

    def fill(self, door: Door) -> None:
        status, body = self.ask(door, rights.token(**claims_for(door)))
        assert status == door.right, (door.route, body)
        self.given_out |= {rights.GRANT: body["grant_id"]} if "reason" in body else {}
        self.given_out |= {rights.CURSOR: body["next_cursor"]} if "dropped_count" in body else {}
        if door.then == "deliver":
            deliver(sample("deliver"))
        elif door.then:
            invoke(door.then, sample(door.then))

    def open(self) -> str:
        connection = f"connection-{next(self.connections)}"
        self._socket("socket_connect", connection)
        return connection

    def connected(self, **claims: Any) -> str:
        connection = self.open()
        (answer,) = self.connect(connection, rights.token(**claims))
        assert answer["type"] == "connected", answer
        return connection

    def connect(self, connection: str, token: str | None, **changes: Any) -> list[dict[str, Any]]:
        payload = {"client_id": "C1", "project": rights.PROJECT, **({} if token is None else {"token": token})}
        return self.say(connection, "connect", {**payload, **changes})

    def say(self, connection: str, kind: str, payload: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What the connection hears of it."""
        self.wire.sent[connection] = []
        message = {"type": kind, "protocol_version": "1.0", "payload": self.filled_in(payload)}
        self._socket("socket_message", connection, body=json.dumps(message))
        return [json.loads(text) for text in self.wire.sent[connection]]

    def filled_in(self, sent: Mapping[str, Any]) -> Any:
        text = json.dumps(sent)
        for name, value in self.given_out.items():
            text = text.replace(f'"{name}"', json.dumps(value))
        return json.loads(text)

    def _socket(self, name: str, connection: str, **changes: Any) -> None:
        event = {**sample(name), **changes}
        event["requestContext"]["connectionId"] = connection
        assert invoke("socket", event) == {"statusCode": 200}


@pytest.fixture(scope="module")
def aws() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patched, deployment(patched):
        yield patched


@pytest.fixture(scope="module")
def hub(aws: pytest.MonkeyPatch) -> Hub:
    """Filled by its owner, each request with no more rights than the table says it takes. Since nobody else may change
    what is there, one is enough for every test."""
    secret = boto3.client("secretsmanager", region_name="us-east-1").create_secret(Name="d", SecretString="5ecret")
    aws.setenv("DELIVERY_SECRET_ARN", secret["ARN"])
    aws.setattr(bearer, "tokens", rights.verifier)
    wire = MemoryWire()
    aws.setattr(live_wiring, "wire", lambda: wire)
    loaded = {name: function(name) for name in {*FUNCTIONS.values(), "socket", "fan_out", "deliver"}}
    aws.setattr("tests.unit.runtime.test_handlers.function", loaded.__getitem__)
    filled = Hub(wire)
    for door in (*DOORS, *(door for door in DOORS if door.again)):
        filled.fill(door)
    return filled


def stored() -> dict[str, Any]:
    """Every item of every table but the connections', which come and go, and the counts of requests."""
    client = client_for(None)
    names = [name for name in client.list_tables()["TableNames"] if "connections" not in name]
    found: dict[str, Any] = {}
    for name in names:
        description = client.describe_table(TableName=name)["Table"]
        keys = [one["AttributeName"] for one in description["KeySchema"]]
        for page in client.get_paginator("scan").paginate(TableName=name, ConsistentRead=True):
            found |= {f"{name} {[item[key] for key in keys]}": item for item in page["Items"]}
    return {key: item for key, item in found.items() if not item.get("p", {}).get("S", "").startswith("rate#")}


def holds(body: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    return {key: body.get(key) for key in part} == dict(part)


def test_every_route_of_the_template_is_in_the_table() -> None:
    assert {door.route for door in DOORS} | OPEN.keys() == FUNCTIONS.keys()
    assert dict(routes_of("SocketApi")).keys() == {"$connect", "$disconnect", "$default"}


def test_every_type_of_message_is_in_the_table(hub: Hub) -> None:
    assert {message.kind for message in MESSAGES} == live_wiring.converse().answers.by_type.keys()


def test_the_rights_of_the_table_are_enough(hub: Hub) -> None:
    """So that what the other tests see refused is refused for the right that is missing. With them the hub was filled:
    each route has answered its owner as the table says."""
    for message in MESSAGES[1:]:
        heard = hub.say(hub.connected(**claims_for(message)), message.kind, message.payload)
        assert "error" not in {one["type"] for one in heard}, (message, heard)


@pytest.mark.parametrize("route", OPEN)
def test_a_route_without_rights_needs_no_token(route: str, hub: Hub) -> None:
    event = {**sample("health"), "routeKey": route}
    event["requestContext"]["http"]["method"] = route.partition(" ")[0]
    assert invoke(FUNCTIONS[route], event)["statusCode"] == OPEN[route]


BAD_TOKENS: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "none": lambda claims: None,
    "garbage": lambda claims: "not.a.token",
    "signed by another": lambda claims: rights.token("another secret, also long enough to sign with", **claims),
    "expired": lambda claims: rights.token(lasts_s=-60, **claims),
    "for another audience": lambda claims: rights.token(**{**claims, "aud": "another"}),
}


@pytest.mark.parametrize("kind", BAD_TOKENS)
def test_without_a_good_token_every_door_is_closed(kind: str, hub: Hub) -> None:
    """401, and on the socket `auth_failed`: nothing can be said on that connection any more."""
    before = stored()
    for door in DOORS:
        status, body = hub.ask(door, BAD_TOKENS[kind](claims_for(door)))
        assert_refused(door, status, body, UNKNOWN)
    for message in MESSAGES[1:]:
        connection = hub.open()
        assert errors(hub.say(connection, message.kind, message.payload)) == ["bad_request"], "connect comes first"
        assert errors(hub.connect(connection, BAD_TOKENS[kind](claims_for(message)))) == ["auth_failed"]
        assert connection in hub.wire.closed
        hub.wire.closed.remove(connection)
        assert errors(hub.say(connection, message.kind, message.payload)) == ["auth_failed"]
    assert stored() == before


def test_a_client_cannot_connect_with_the_token_of_another(hub: Hub) -> None:
    """S15"""
    good = rights.token(projects=[rights.PROJECT], partitions=["*"], roles=["consumer"])
    assert errors(hub.connect(hub.open(), good, client_id="C2")) == ["auth_failed"]


@pytest.mark.parametrize("tenant", [rights.TENANT, "a tenant that has nothing"])
def test_without_the_role_every_door_is_closed(tenant: str, hub: Hub) -> None:
    before = stored()
    for door in DOORS:
        for roles in lacking_a_role(door.needs):
            token = rights.token(**claims_for(door, roles=roles, tenant=tenant, team_slug="default"))
            assert_refused(door, *hub.ask(door, token), REFUSED)
    for message in MESSAGES:
        for roles in lacking_a_role(message.needs):
            heard = hub.say(
                hub.connected(**claims_for(message, roles=roles, tenant=tenant)), message.kind, message.payload
            )
            assert errors(heard) == ["forbidden"], (message, heard)
    assert stored() == before


def test_without_the_project_its_doors_are_closed(hub: Hub) -> None:
    """S7"""
    before = stored()
    for door in DOORS:
        if door.project:
            token = rights.token(**claims_for(door, projects=["another"]))
            assert_refused(door, *hub.ask(door, token), REFUSED)
    outside = rights.token(projects=["another"], partitions=["*"], roles=sorted(rights.ROLES))
    assert errors(hub.connect(hub.open(), outside)) == ["forbidden"]
    inside = hub.connected(projects=[rights.PROJECT], partitions=["*"], roles=sorted(rights.ROLES))
    asked = {"since_committed_id": 0, "project": "another"}
    assert errors(hub.say(inside, "sync", asked)) == ["forbidden"]
    (item,) = rights.ITEM["events"]
    (told,) = hub.say(inside, "submit_events", {"events": [{**item, "project": "another"}]})
    assert holds(told["payload"], rights.FORBIDDEN_RESULTS)
    assert beside_the_audit(stored()) == beside_the_audit(before)


def test_without_the_partition_its_doors_are_closed(hub: Hub) -> None:
    """S7"""
    before = stored()
    for door in DOORS:
        if door.partition is not None:
            token = rights.token(**claims_for(door, partitions=elsewhere_than(door.partition)))
            status, body = hub.ask(door, token)
            assert (status, holds(body, door.unreached[1])) == (door.unreached[0], True), (door.route, body)
    for message in MESSAGES:
        if message.partition is not None:
            claims = claims_for(message, partitions=elsewhere_than(message.partition))
            (told,) = hub.say(hub.connected(**claims), message.kind, message.payload)
            kind, payload = message.unreached
            assert (told["type"], holds(told["payload"], payload)) == (kind, True), (message, told)
    after = stored()
    assert beside_the_audit(after) == beside_the_audit(before)
    assert any("raw_read_refused" in key for key in after.keys() - before.keys()), "who broke no glass is known"


def test_a_sync_cannot_subscribe_to_more_than_it_may_read(hub: Hub) -> None:
    """S7"""
    narrow = hub.connected(projects=[rights.PROJECT], partitions=["orders"], roles=["consumer"])
    asked = {"since_committed_id": 0, "partitions": ["orders"], "subscription_partitions": ["orders", "payroll"]}
    assert errors(hub.say(narrow, "sync", asked)) == ["forbidden"]


def test_another_tenant_sees_nothing_and_changes_nothing_over_http(hub: Hub) -> None:
    """With every right in a tenant of its own, under the same names."""
    before = stored()
    while woken():
        continue
    grants = set[str]()
    for door in sorted(DOORS, key=lambda door: door.turn):
        status, body = hub.ask(door, stranger(door, "elsewhere"))
        expected, part = door.elsewhere
        assert (status, holds(body, part)) == (expected, True), (door.route, body)
        grants |= {body["grant_id"]} if "reason" in body else set()
    for door in DOORS:
        if door.turn == rights.CREATES:
            status, body = hub.ask(rights.renamed(door), stranger(door, "elsewhere"))
            assert status == door.elsewhere[0], (door.route, body)
            grants |= {body["grant_id"]} if "reason" in body else set()
    assert_untouched(before, "elsewhere", grants)
    assert {wake["tenant"] for wake in woken()} <= {"elsewhere"}


def test_another_tenant_sees_nothing_and_changes_nothing_over_the_socket(hub: Hub) -> None:
    """Neither in an answer, nor when the first tenant's events are fanned out."""
    before = stored()
    owner = hub.connected(projects=[rights.PROJECT], partitions=["*"], roles=["consumer"])
    hub.say(owner, "sync", {"since_committed_id": 0})
    strangers = []
    for message in MESSAGES:
        connection = hub.open()
        heard = hub.connect(connection, stranger(message, "elsewhere-live"))
        if message.kind != "connect":
            heard = hub.say(connection, message.kind, message.payload)
        assert [one["type"] for one in heard] == [kind for kind, _ in message.elsewhere], (message, heard)
        for one, (_, part) in zip(heard, message.elsewhere, strict=True):
            assert holds(one["payload"], part), (message, one)
        strangers.append(connection)
    assert_untouched(before, "elsewhere-live")
    for connection in (owner, *strangers):
        hub.wire.sent[connection] = []
    invoke("submit", signed(sample("submit"), "order-18-paid"))
    for ledger in ("sync#default#demo", "realtime#default#sess-1", "streams#default#rt-1#delivery"):
        invoke("fan_out", {"Records": [{"body": ledger}]})
    assert json.loads(hub.wire.sent[owner][-1])["payload"]["id"] == "order-18-paid", "who may see it, does"
    assert {name: texts for name, texts in hub.wire.sent.items() if name in strangers and texts} == {}


def stranger(needed: Door | Message, tenant: str) -> str:
    """A token with every right in a tenant of its own."""
    everything = {"roles": sorted(rights.ROLES), "partitions": ["*"], "team_slug": "default"}
    return rights.token(**claims_for(needed, tenant=tenant, **everything))


def assert_untouched(before: Mapping[str, Any], tenant: str, grants: Collection[str] = ()) -> None:
    """What was there is as it was, and what is new is the other tenant's: raw values by grant, all else by name."""
    after = stored()
    assert {key: after.get(key) for key in before} == before
    foreign = [key for key in after.keys() - before.keys() if tenant not in key]
    assert [key for key in foreign if "diagnostics" not in key or not any(id_ in key for id_ in grants)] == []


def signed(event: dict[str, Any], id_: str) -> dict[str, Any]:
    """A submit by the owner, under another id."""
    token = rights.token(projects=[rights.PROJECT], partitions=["*"], roles=["producer"])
    headers = {**event["headers"], "authorization": f"Bearer {token}"}
    return {**event, "headers": headers, "body": event["body"].replace("order-17-paid", id_)}


def errors(heard: list[dict[str, Any]]) -> list[str]:
    return [one["payload"]["code"] if one["type"] == "error" else f"not refused: {one}" for one in heard]


def beside_the_audit(items: Mapping[str, Any]) -> dict[str, Any]:
    """What operators were refused is recorded, and nothing else is changed."""
    return {key: item for key, item in items.items() if "audit#" not in key}


def assert_refused(door: Door | Message, status: int, body: Mapping[str, Any], how: tuple[int, set[str]]) -> None:
    expected, codes = how
    assert (status, body.get("machine_code", body.get("code")) in codes) == (expected, True), (door, status, body)
