"""The console for operators: a page and its files. They hold nothing, so they need no token."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from millrace.runtime.http import Request, Response, endpoint
from millrace.runtime.settings import websocket_url
from millrace.runtime.snapstart import before_snapshot
from millrace.runtime.static import StaticFile, page_headers, read_folder, serve

ROUTES: dict[str, Callable[[Request], str]] = {
    "GET /console": lambda _: "index.html",
    "GET /console/{file}": lambda request: request.path("file"),
}
"""Which file is wanted."""


@cache
def files() -> dict[str, StaticFile]:
    return read_folder(Path(__file__).parent / "static")


before_snapshot(files)


@endpoint
def handler(request: Request) -> Response:
    socket = urlsplit(websocket_url())
    headers = page_headers(connect_src=f"{socket.scheme}://{socket.netloc}")
    return serve(files(), ROUTES[request.route](request), request, headers)
