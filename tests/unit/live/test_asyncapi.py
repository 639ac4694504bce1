"""S14, S15: the description of the WebSocket is valid AsyncAPI, and its examples obey its own schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from infra import asyncapi, cloudformation
from millrace.live.domain.messages import CAPABILITIES, CLOSING, LIMITS

ROOT = Path(__file__).parents[3]
DOCUMENT: dict[str, Any] = cloudformation.parse((ROOT / "docs" / "asyncapi.yaml").read_text())
MESSAGES: dict[str, Any] = DOCUMENT["components"]["messages"]
CLIENT = {"connect", "submit_events", "sync", "heartbeat", "disconnect", "subscribe", "unsubscribe"}
SERVER = {
    "connected",
    "submit_events_result",
    "event_broadcast",
    "sync_response",
    "heartbeat_ack",
    "subscribed",
    "event",
    "error",
}
EXAMPLES = [
    pytest.param(name, example["payload"], id=f"{name}-{number}")
    for name, message in MESSAGES.items()
    for number, example in enumerate(message["examples"])
]


def schema_of(name: str) -> Draft7Validator:
    return Draft7Validator({**MESSAGES[name]["payload"], "components": DOCUMENT["components"]})


def example(name: str, number: int = 0) -> Any:
    return json.loads(json.dumps(MESSAGES[name]["examples"][number]["payload"]))


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for member in value:
            yield from references(member)


def test_the_document_is_valid_asyncapi() -> None:
    official = json.loads((ROOT / "tests" / "schemas" / "asyncapi-3.0.0.json").read_text())
    errors = [f"{error.json_path}: {error.message}" for error in Draft7Validator(official).iter_errors(DOCUMENT)]
    assert errors == []


def test_the_check_against_the_official_schema_bites() -> None:
    official = json.loads((ROOT / "tests" / "schemas" / "asyncapi-3.0.0.json").read_text())
    broken = {**DOCUMENT, "operations": {"x": {"action": "publish", "channel": {"$ref": "#/channels/hub"}}}}
    assert not Draft7Validator(official).is_valid(broken)


def test_every_reference_leads_somewhere() -> None:
    for reference in references(DOCUMENT):
        found: Any = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]


def test_every_schema_is_a_schema() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft7Validator.check_schema(schema)


def test_s14_every_message_is_described_with_an_example_and_an_operation() -> None:
    assert set(MESSAGES) == set(DOCUMENT["channels"]["hub"]["messages"]) == CLIENT | SERVER
    assert all(message["examples"] for message in MESSAGES.values())
    received: set[str] = set()
    sent: set[str] = set()
    for operation in DOCUMENT["operations"].values():
        said = {reference["$ref"].rsplit("/", 1)[1] for reference in operation["messages"]}
        answers = {reference["$ref"].rsplit("/", 1)[1] for reference in operation.get("reply", {}).get("messages", ())}
        (received if operation["action"] == "receive" else sent).update(said)
        sent.update(answers)
    assert received == CLIENT
    assert sent == SERVER


@pytest.mark.parametrize(("name", "message"), EXAMPLES)
def test_an_example_obeys_its_own_schema_and_no_other(name: str, message: Any) -> None:
    assert [other for other in MESSAGES if schema_of(other).is_valid(message)] == [name]


@pytest.mark.parametrize("name", sorted(CLIENT | SERVER))
@pytest.mark.parametrize("field", ["type", "protocol_version", "payload"])
def test_s14_the_envelope_is_demanded(name: str, field: str) -> None:
    message = example(name)
    del message[field]
    assert not schema_of(name).is_valid(message)
    assert not schema_of(name).is_valid({**example(name), "protocol_version": "2.0"})
    assert schema_of(name).is_valid({**example(name), "unknown": 1})


@pytest.mark.parametrize("name", sorted(name for name in CLIENT | SERVER if example(name)["payload"]))
def test_an_empty_payload_is_no_message(name: str) -> None:
    assert schema_of(name).is_valid({**example(name), "payload": {}}) == (name == "heartbeat_ack")


def test_s12_the_limits_shown_are_the_limits_that_hold() -> None:
    payload = example("connected")["payload"]
    assert payload["limits"] == LIMITS
    assert payload["capabilities"] == CAPABILITIES
    assert set(DOCUMENT["components"]["schemas"]["limits"]["properties"]) == set(LIMITS)


def test_the_committed_document_is_not_stale() -> None:
    assert asyncapi.document() == (ROOT / "docs" / "asyncapi.yaml").read_text(), "run: make generated"


def test_s15_the_error_codes_are_named_and_those_that_close_say_so() -> None:
    code = DOCUMENT["components"]["schemas"]["code"]
    assert all(f"`{name}`" in code["description"] for name in code["enum"])
    assert {name for name in code["enum"] if f"`{name}` (closes)" in code["description"]} == CLOSING
