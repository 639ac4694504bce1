"""Makes functions/meta/openapi.json: `make generated`. A test fails when it is stale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from infra.openapi import (
    catalog,
    catalog_models,
    delivery,
    delivery_models,
    diagnostics,
    diagnostics_models,
    ledgers,
    ledgers_models,
    markers,
    markers_models,
    models,
    overview,
    overview_models,
    profiles,
    profiles_models,
    realtime,
    realtime_models,
    retention,
    retention_models,
    sdk_errors,
    status_models,
    streams,
    streams_models,
    sync,
    tables,
    tables_models,
)
from infra.openapi.parts import JSON, parameter, problems, ref, response
from millrace.version import VERSION

META = Path(__file__).parents[2] / "functions/meta"
MODELS = (
    *models.MODELS,
    *realtime_models.MODELS,
    *streams_models.MODELS,
    *status_models.MODELS,
    *markers_models.MODELS,
    *diagnostics_models.MODELS,
    *delivery_models.MODELS,
    *catalog_models.MODELS,
    *retention_models.MODELS,
    *ledgers_models.MODELS,
    *overview_models.MODELS,
    *tables_models.MODELS,
    *profiles_models.MODELS,
)
DESCRIPTION = """\
A serverless event hub. Events are committed **exactly once** into an ordered, gapless ledger and read back from any \
position. Send `Authorization: Bearer <token>`; on a laptop `.venv/bin/millrace token` prints one."""


def document() -> dict[str, Any]:
    _, schemas = models_json_schema(
        [(model, "validation") for model in MODELS],
        ref_template="#/components/schemas/{model}",
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Millrace",
            "version": VERSION,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "."}],
        "tags": [
            {"name": "sync", "description": "Projects, partitions, committed ids."},
            {"name": "realtime", "description": "Sessions of typed events, sequences, transcripts."},
            {"name": "streams", "description": "Runtimes, their streams of events, cursors, status."},
            {"name": "markers", "description": "Places shared by a runtime's clients, with revisions."},
            {"name": "diagnostics", "description": "Break-glass grants, raw values, audit."},
            {"name": "delivery", "description": "Batches in, targets out, and which target has which event."},
            {"name": "catalog", "description": "Domains of versioned events in one envelope."},
            {"name": "retention", "description": "How long events are kept."},
            {"name": "operators", "description": "Which ledgers there are, how they stand, and their events."},
            {"name": "tables", "description": "What compaction made, what it set aside, and what it takes."},
            {"name": "hub"},
        ],
        "paths": {
            **sync.paths(),
            **realtime.paths(),
            **streams.paths(),
            **markers.paths(),
            **diagnostics.paths(),
            **delivery.paths(),
            **catalog.paths(),
            **retention.paths(),
            **ledgers.paths(),
            **overview.paths(),
            **tables.paths(),
            **profiles.paths(),
            "/health": {"get": _open("health", "Whether the hub answers", JSON, ref("Health"))},
            "/openapi.json": {"get": _open("openapi", "This document", JSON, {"type": "object"})},
            "/docs": {"get": _open("docs", "This document in Swagger UI", "text/html", {"type": "string"})},
            "/docs/{file}": {"get": _file("docsFile", "A file of that page", "reference.js")},
            "/console": {"get": _open("console", "The console for operators", "text/html", {"type": "string"})},
            "/console/{file}": {"get": _file("consoleFile", "A file of the console", "main.js")},
        },
        "components": {
            "schemas": schemas["$defs"],
            "examples": sdk_errors.examples(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _open(name: str, summary: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": name,
        "tags": ["hub"],
        "summary": summary,
        "security": [],
        "responses": {"200": response("Here it is.", schema, kind)},
    }


def _file(name: str, summary: str, example: str) -> dict[str, Any]:
    described = _open(name, summary, "text/javascript", {"type": "string"})
    file = parameter("file", "path", {"type": "string"}, "As the page names it.") | {"example": example}
    return {**described, "parameters": [file], "responses": described["responses"] | problems("404")}


def files() -> dict[Path, str]:
    return {META / "openapi.json": json.dumps(document(), indent=1, ensure_ascii=False) + "\n"}
