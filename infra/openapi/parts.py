"""What the descriptions of the contracts' routes are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infra.limits import TEXTS

JSON = "application/json"

PROBLEMS = {
    "400": "The request breaks a rule; `details.field` says where. Nothing was processed.",
    "401": "No token, or one that is expired, unsigned or for somebody else.",
    "403": "The token does not reach this project, partition or role.",
    "413": f"The body is over {TEXTS['http-body']}.",
    "429": "Too many requests, or storage is throttled: wait `Retry-After` seconds, send the same ids again.",
    "500": "Our mistake. The same request again is safe.",
    "503": "Too many writers, or storage did not answer. The same request again is safe.",
}

SOME_PROBLEMS = {
    "404": "There is no such thing.",
    "409": "What is asked for contradicts what is stored, or changed at the same time.",
    "415": "The body is compressed in a way that cannot be read, or was damaged on its way: send it plain.",
}
"""What only some routes answer."""


EXAMPLES: Mapping[tuple[str, str], Any] = {
    ("project", "path"): "demo",
    ("sessionId", "path"): "sess_123",
    ("type", "path"): "call.started",
    ("runtime_id", "path"): "rt-1",
    ("stream_id", "path"): "delivery",
    ("marker_id", "path"): "gate",
    ("expected_revision", "query"): 2,
    ("grant_id", "path"): "64a72dc4c891ea825376589b6fa1060e",
    ("grant_id", "query"): "64a72dc4c891ea825376589b6fa1060e",
    ("target_id", "path"): "archive-hub",
    ("event_id", "path"): "sync:demo:order-17-paid",
    ("event_id", "query"): "sync:demo:order-17-paid",
    ("domain", "path"): "orders",
    ("contract", "path"): "sync",
    ("contract", "query"): "sync",
    ("scope", "path"): "demo",
    ("id", "path"): "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab",
    ("id", "query"): "order-17-paid",
}
"""Of parameters that must be given, by name and place: with the examples of the bodies they make requests that work."""


def ref(model: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model}"}


def content(kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: {"schema": schema}}


def response(description: str, schema: Mapping[str, Any], kind: str = JSON) -> dict[str, Any]:
    return {"description": description, "content": content(kind, schema)}


def problems(*statuses: str) -> dict[str, Any]:
    return {status: response({**PROBLEMS, **SOME_PROBLEMS}[status], ref("Problem")) for status in sorted(statuses)}


def parameter(name: str, where: str, schema: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    described = {"description": description} if description else {}
    example = {"example": EXAMPLES[name, where]} if (name, where) in EXAMPLES else {}
    return {"name": name, "in": where, "required": where == "path", **described, **example, "schema": schema}


TRACE = parameter(
    "traceparent",
    "header",
    {"type": "string"},
    "The call that the events belong to, as W3C Trace Context has it. Kept beside them, no part of their content, and "
    "passed on with broadcasts and deliveries.",
)


def operation(
    tag: str,
    name: str,
    summary: str,
    description: str,
    responses: Mapping[str, Any],
    *,
    parameters: list[dict[str, Any]] | None = None,
    body: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A route that wants a token; `body` is the content of its request."""
    return {
        "operationId": name,
        "tags": [tag],
        "summary": summary,
        "description": description,
        "security": [{"token": []}],
        **({"parameters": parameters} if parameters else {}),
        **({"requestBody": {"required": True, "content": body}} if body else {}),
        "responses": responses,
    }
