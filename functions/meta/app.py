"""GET /health, /openapi.json, /docs; preflights; and a clear answer to every other path."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from millrace.ledger.domain.errors import NotFound
from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.settings import websocket_url
from millrace.version import VERSION

HERE = Path(__file__).parent


def health() -> Response:
    """And where the WebSocket is: a client is told one address, and finds the other one here."""
    return Response(json.dumps({"status": "ok", "version": VERSION, "websocket_url": websocket_url()}))


def openapi() -> Response:
    return Response((HERE / "openapi.json").read_text())


def docs() -> Response:
    return Response((HERE / "docs.html").read_text(), content_type="text/html; charset=utf-8")


ROUTES: dict[str, Callable[[], Response]] = {
    "GET /health": health,
    "GET /openapi.json": openapi,
    "GET /docs": docs,
}


@endpoint
def handler(request: Request) -> Response:
    if request.method == "OPTIONS":
        return Response("", 204)
    if request.route in ROUTES:
        return ROUTES[request.route]()
    raise NotFound("No such route; GET /docs lists them.", field="path")
