"""R10: the examples of the OpenAPI document are sent as they stand, to a whole hub: they work, and what comes back is
as published."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from infra.openapi.build import META
from tests.e2e.conftest import Hub

DOCUMENT = json.loads((META / "openapi.json").read_text())
NOT_THERE = {"retryDelivery", "showAttempts", "showQuarantined", "repairQuarantined"}
"""Asked for by an id that only a hub with a history has: 404."""
FOR_THE_WHOLE_HUB = {"putRegistry", "readRegistry"}
"""Of the tenant `default`; the registry is put back afterwards."""
ENDS = ("drainTarget", "deleteTarget")
LAST = ("revokeGrant", "deleteMarker")
ROLES = ["producer", "consumer", "operator"]


@dataclass(frozen=True)
class Example:
    operation: Mapping[str, Any]
    method: str
    path: str
    name: str = ""
    body: Any = None

    @property
    def id(self) -> str:
        return str(self.operation["operationId"])

    @property
    def turn(self) -> int:
        """Targets come first and go before there is an event: nothing is sent to the address of the example. What takes
        something away comes last."""
        if self.path.startswith("/v1/targets"):
            return ENDS.index(self.id) + 1 if self.id in ENDS else 0
        return 4 if self.id in LAST else 3


@dataclass(frozen=True)
class Answer:
    status: int
    kind: str
    body: Any


def examples() -> Iterator[Example]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            bodies = content.get("examples", {"": {"value": content.get("example")}})
            for name, one in bodies.items():
                yield Example(operation, method.upper(), path, name, one["value"])


ALL = list(examples())


@pytest.fixture(scope="module")
def answers(stack: Hub) -> Iterator[dict[tuple[str, str], Answer]]:
    """To all of them, sent one after the other to one tenant's hub."""
    tenant, given_out = f"examples-{uuid.uuid4().hex}", dict[str, str]()
    everything = stack.headers(roles=ROLES)
    before = stack.http.get("/v1/registry", headers=everything).json()["registry"]
    found = {}
    for example in sorted(ALL, key=lambda one: one.turn):
        whole = example.id in FOR_THE_WHOLE_HUB
        answer = sent(stack, example, everything if whole else stack.headers(tenant=tenant, roles=ROLES), given_out)
        found[example.id, example.name] = answer
        if example.id == "createGrant":
            given_out["grant_id"] = answer.body["grant_id"]
    yield found
    stack.http.put("/v1/registry", json=before or {}, headers=everything).raise_for_status()


def sent(hub: Hub, example: Example, headers: dict[str, str], given_out: Mapping[str, str]) -> Answer:
    path, asked = example.path, {}
    for one in example.operation.get("parameters", []):
        if "example" in one:
            value = given_out.get(one["name"], str(one["example"]))
            path = path.replace(f"{{{one['name']}}}", quote(value, safe=""))
            if one["in"] == "query":
                asked[one["name"]] = value
    body = {} if example.body is None else {"json": example.body}
    answered = hub.http.request(example.method, path, params=asked, headers=headers, **body)
    kind = answered.headers["content-type"].partition(";")[0]
    return Answer(answered.status_code, kind, answered.json() if kind.endswith("json") else answered.text)


def test_whoever_reads_the_document_can_send_every_request_of_it() -> None:
    """Each parameter that must be given has an example, and so has each body."""
    for example in ALL:
        required = [one for one in example.operation.get("parameters", []) if one["required"]]
        assert [one["name"] for one in required if "example" not in one] == [], example.id
        assert (example.body is None) == ("requestBody" not in example.operation), example.id


@pytest.mark.parametrize("example", ALL, ids=lambda one: f"{one.id}-{one.name}".rstrip("-"))
def test_an_example_works_and_is_answered_as_published(
    example: Example, answers: dict[tuple[str, str], Answer]
) -> None:
    answer = answers[example.id, example.name]
    assert answer.status == (404 if example.id in NOT_THERE else 200), answer.body
    schema = example.operation["responses"][str(answer.status)]["content"][answer.kind]["schema"]
    problems = Draft202012Validator({**schema, "components": DOCUMENT["components"]}).iter_errors(answer.body)
    assert [f"{one.json_path}: {one.message[:200]}" for one in problems] == []
    for one in answer.body.get("results", []) if isinstance(answer.body, dict) else []:
        assert "error" not in one, one
        assert one.get("status") != "rejected", one
        assert one.get("ok") is not False, one
