"""GET /health, /openapi.json, /docs and its files; preflights; and a clear answer to every other path."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from millrace.ledger.domain.errors import NotFound
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.settings import websocket_url
from millrace.runtime.static import StaticFile, page_headers, read_folder, serve, swagger_ui
from millrace.version import VERSION

HERE = Path(__file__).parent
PAGE = page_headers(without=("require-trusted-types-for", "trusted-types"), img_src="data:")
"""Swagger UI has pictures in its style sheet, and sanitizes markup by itself."""


def health(_: Request) -> Response:
    """And where the WebSocket is: a client is told one address, and finds the other one here."""
    return Response(json.dumps({"status": "ok", "version": VERSION, "websocket_url": websocket_url()}))


def openapi(_: Request) -> Response:
    return Response((HERE / "openapi.json").read_text())


@cache
def reference() -> dict[str, StaticFile]:
    return {**read_folder(swagger_ui()), **read_folder(HERE / "reference")}


ROUTES: dict[str, Callable[[Request], Response]] = {
    "GET /health": health,
    "GET /openapi.json": openapi,
    "GET /docs": lambda request: serve(reference(), "index.html", request, PAGE),
    "GET /docs/{file}": lambda request: serve(reference(), request.path("file"), request, PAGE),
}


@endpoint
def handler(request: Request) -> Response:
    if request.method == "OPTIONS":
        return Response("", 204)
    if request.route in ROUTES:
        return ROUTES[request.route](request)
    raise NotFound("No such route; GET /docs lists them.", field="path")
