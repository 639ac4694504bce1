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
    return {"name": name, "in": where, "required": where == "path", **described, "schema": schema}


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
