"""Writes functions/meta/openapi.json and docs.html: `make openapi`. A test fails when they are stale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from infra.openapi.models import MODELS
from infra.openapi.page import page
from millrace.version import VERSION

META = Path(__file__).parents[2] / "functions/meta"
DESCRIPTION = """\
A serverless event hub. Events are committed **exactly once** into an ordered, gapless ledger and read back from any \
position. Send `Authorization: Bearer <token>`; on a laptop `.venv/bin/millrace token` prints one."""

PROBLEMS = {
    "400": "The request breaks a rule; `details.field` says where. Nothing was processed.",
    "401": "No token, or one that is expired, unsigned or for somebody else.",
    "403": "The token does not reach this project, partition or role.",
    "413": "The body is over 1 MiB.",
    "429": "Too many requests, or storage is throttled: wait `Retry-After` seconds, send the same ids again.",
    "500": "Our mistake. The same request again is safe.",
    "503": "Too many writers, or storage did not answer. The same request again is safe.",
}


def document() -> dict[str, Any]:
    _, schemas = models_json_schema(
        [(model, "validation") for model in MODELS], ref_template="#/components/schemas/{model}"
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Millrace",
            "version": VERSION,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": "sync", "description": "Projects, partitions, committed ids."}, {"name": "hub"}],
        "paths": {
            "/v1/projects/{project}/submit_events": {
                "post": _operation(
                    "submitEvents",
                    "Commit events, each exactly once",
                    "Items run in order and do not undo each other. The same id with the same content answers its "
                    "first result; with other content it is rejected.",
                    "SubmitRequest",
                    "SubmitAnswer",
                )
            },
            "/v1/projects/{project}/sync": {
                "post": _operation(
                    "sync",
                    "Read events from any position",
                    "Every event of the partitions after `since_committed_id`, in order, up to a watermark that stays "
                    "fixed for the cycle. A page holds at most `limit` events and 4 MiB.",
                    "SyncRequest",
                    "SyncAnswer",
                )
            },
            "/health": {"get": _open("health", "Whether the hub answers", "application/json", _ref("Health"))},
            "/openapi.json": {"get": _open("openapi", "This document", "application/json", {"type": "object"})},
            "/docs": {"get": _open("docs", "This document as a page", "text/html", {"type": "string"})},
        },
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _ref(model: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model}"}


def _content(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {kind: {"schema": schema}}


def _operation(name: str, summary: str, description: str, request: str, answer: str) -> dict[str, Any]:
    problems = {
        status: {"description": text, "content": _content("application/json", _ref("Problem"))}
        for status, text in PROBLEMS.items()
    }
    return {
        "operationId": name,
        "tags": ["sync"],
        "summary": summary,
        "description": description,
        "security": [{"token": []}],
        "parameters": [
            {
                "name": "project",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1, "maxLength": 128},
            }
        ],
        "requestBody": {"required": True, "content": _content("application/json", _ref(request))},
        "responses": {
            "200": {"description": "Done.", "content": _content("application/json", _ref(answer))},
            **problems,
        },
    }


def _open(name: str, summary: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": name,
        "tags": ["hub"],
        "summary": summary,
        "security": [],
        "responses": {"200": {"description": "Here it is.", "content": _content(kind, schema)}},
    }


def files() -> dict[Path, str]:
    described = document()
    return {
        META / "openapi.json": json.dumps(described, indent=1, ensure_ascii=False) + "\n",
        META / "docs.html": page(described),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
