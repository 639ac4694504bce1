"""Names and ids at the limits of bytes, at every door: taken or refused with a rule, never a failure of storage.

Tables refuse what DynamoDB refuses: keys of more than 2,048 bytes, sort keys of more than 1,024, and empty ones. Moto
does so for few calls, so the client itself does it here for all.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from millrace.ledger.adapters.aws_errors import refusal_of, translated
from millrace.ledger.adapters.dynamodb.claims import DynamoClaims
from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.domain.errors import BadRequest, MillraceError, TooLarge, Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.live import wiring as live_wiring
from millrace.live.adapters.memory import MemoryWire
from millrace.runtime import bearer, clients
from tests.unit.runtime import rights
from tests.unit.runtime.rights import DOORS, MESSAGES, Door
from tests.unit.runtime.test_handlers import deployment, function
from tests.unit.runtime.test_rights import FUNCTIONS, Hub

pytestmark = pytest.mark.slow

LENGTHS = (0, 128, 129, 2_049)
HASH_KEYS, SORT_KEYS = ("p", "k", "l", "b"), ("s", "f")
TOO_LONG = "One or more parameter values were invalid: Size of {}key has exceeded the maximum size limit of{} bytes"
EMPTY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string"
)


def strict(params: Any, **_: Any) -> None:
    """As DynamoDB: what it is sent to find or keep a row by is not empty, and not too long."""
    for item in keys_in(params):
        for name, value in item.items():
            text = value.get("S") if isinstance(value, dict) else None
            if text is None or name not in (*HASH_KEYS, ":p", *SORT_KEYS, ":s", ":after", ":begin", ":end"):
                continue
            kind, most = ("range", 1024) if name in (*SORT_KEYS, ":s", ":after", ":begin", ":end") else ("hash", 2048)
            if len(text.encode()) > most:
                raise invalid(TOO_LONG.format(kind, most))
            if not text and not name.startswith(":"):
                raise invalid(EMPTY)


def invalid(text: str) -> ClientError:
    return ClientError({"Error": {"Code": "ValidationException", "Message": text}}, "any")


def keys_in(params: Any) -> Iterator[dict[str, Any]]:
    for name, value in params.items() if isinstance(params, dict) else ():
        if name in ("Key", "Item"):
            yield value
        elif name == "Keys":
            yield from value
        elif name == "ExpressionAttributeValues" and "KeyConditionExpression" in params:
            yield value
        elif isinstance(value, dict):
            yield from keys_in(value)
        elif isinstance(value, list):
            for one in value:
                yield from keys_in(one)


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with pytest.MonkeyPatch.context() as patched, deployment(patched):
        patched.setenv("TENANT_REQUESTS", "1000000")
        patched.setenv("DELIVERY_SECRET_ARN", clients.secrets_client().create_secret(Name="d", SecretString="s")["ARN"])
        patched.setattr(bearer, "tokens", rights.verifier)
        wire = MemoryWire()
        patched.setattr(live_wiring, "wire", lambda: wire)
        loaded = {name: function(name) for name in {*FUNCTIONS.values(), "socket"}}
        patched.setattr("tests.unit.runtime.test_handlers.function", loaded.__getitem__)
        clients.dynamodb_client().meta.events.register("provide-client-params.dynamodb.*", strict)
        yield Hub(wire, connections=itertools.count())


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the texts of a body are."""
    if isinstance(value, str):
        yield path
    for name, part in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from leaves(part, (*path, name))


def changed_at(value: Any, path: tuple[Any, ...], to: str) -> Any:
    changed = copy.deepcopy(value)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return changed


def variants(event: dict[str, Any]) -> Iterator[tuple[str, Callable[[str], dict[str, Any]]]]:
    for part in ("pathParameters", "queryStringParameters"):
        for name in event.get(part) or {}:
            yield f"{part}.{name}", partial(with_parameter, event, part, name)
    try:
        body = json.loads(event.get("body") or "null")
    except ValueError:
        return
    for path in leaves(body):
        yield ".".join(map(str, path)), partial(with_body, event, body, path)


def with_parameter(event: dict[str, Any], part: str, name: str, to: str) -> dict[str, Any]:
    return {**event, part: {**event[part], name: to}}


def with_body(event: dict[str, Any], body: Any, path: tuple[Any, ...], to: str) -> dict[str, Any]:
    return {**event, "body": json.dumps(changed_at(body, path, to))}


def texts() -> Iterator[str]:
    for length in LENGTHS:
        yield "n" * length
    yield from ("ü" * 65, "%" * 1_000)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.route)
def test_a_name_or_an_id_of_any_length_is_taken_or_refused_by_a_rule(hub: Hub, door: Door) -> None:
    everything: dict[str, Any] = {"projects": ["*", rights.PROJECT], "partitions": ["*"], "roles": sorted(rights.ROLES)}
    for where, made in variants(door.event):
        for text in texts():
            event = made(text)
            project = (event.get("pathParameters") or {}).get("project")
            claims = dict(everything)
            if project and len(project.encode()) <= 128:
                claims["projects"] = ["*", project]
            asked = Door(event, door.needs, door.elsewhere)
            status, body = hub.ask(asked, rights.token(**claims))
            assert status < 500, (where, len(text), text[:1], body)
            if status >= 400:
                assert body.get("message"), (where, body)


@pytest.mark.parametrize("tenant", ["t" * 128, "%" * 128, "ü" * 64])
def test_the_longest_tenant_passes_every_door(hub: Hub, tenant: str) -> None:
    everything: dict[str, Any] = {"partitions": ["*"], "roles": sorted(rights.ROLES), "tenant": tenant}
    for door in DOORS:
        claims = {**everything, "projects": ["*", rights.PROJECT]}
        status, body = hub.ask(door, rights.token(**claims))
        assert status < 500, (door.route, body)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.kind)
def test_a_message_with_a_name_of_any_length_is_answered_by_a_rule(hub: Hub, message: rights.Message) -> None:
    claims: dict[str, Any] = {"projects": [rights.PROJECT], "partitions": ["*"], "roles": sorted(rights.ROLES)}
    for path in leaves(message.payload):
        for text in texts():
            connection = hub.open() if message.kind == "connect" else hub.connected(**claims)
            payload = changed_at(message.payload, path, text)
            if message.kind == "connect":
                payload = {"token": rights.token(**claims), **payload}
            for heard in hub.say(connection, message.kind, payload):
                assert heard["payload"].get("code") != "server_error", (path, len(text), heard)


@pytest.mark.parametrize(
    ("text", "kind", "status"),
    [
        (TOO_LONG.format("hash", 2048), BadRequest, 400),
        (TOO_LONG.format("range", 1024), BadRequest, 400),
        ("Aggregated size of all range keys has exceeded the size limit of 1024 bytes", BadRequest, 400),
        (EMPTY, BadRequest, 400),
        ("Item size has exceeded the maximum allowed size", TooLarge, 413),
        ("Item size to update has exceeded the maximum allowed size", TooLarge, 413),
    ],
)
def test_what_dynamodb_refuses_for_its_size_is_the_callers_to_change(
    text: str, kind: type[MillraceError], status: int
) -> None:
    def refused(error: ClientError) -> None:
        with translated():
            raise error

    with pytest.raises(kind) as told:
        refused(invalid(text))
    assert told.value.status == status
    assert told.value.retry_after_ms is None, "the same again would be refused for ever"
    reasons = [{"Code": "None"}, {"Code": "ValidationError", "Message": text}]
    error: Any = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
    with pytest.raises(kind):
        refused(ClientError(error, "any"))


def test_a_mistake_of_our_own_is_not_blamed_on_the_caller() -> None:
    assert refusal_of("ValidationException", "Invalid UpdateExpression: Syntax error") is None
    assert refusal_of("AccessDenied", TOO_LONG) is None

    def refused() -> None:
        with translated():
            raise invalid("Invalid UpdateExpression: Syntax error")

    with pytest.raises(Unavailable):
        refused()


def test_a_claim_of_a_batch_that_is_too_long_is_refused_as_one_alone() -> None:
    class Refusing:
        def batch_execute_statement(self, Statements: list[Any]) -> Any:  # noqa: N803 - DynamoDB's word
            told = {"Code": "ValidationError", "Message": TOO_LONG.format("hash", 2048)}
            return {"Responses": [{"Error": told} for _ in Statements]}

    client: Any = Refusing()
    with pytest.raises(BadRequest):
        DynamoClaims(client, "t", in_turn).create(Ledger.of("sync", "t", "p"), ["a", "b"], 0)
