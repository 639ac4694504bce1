"""Files of a function's folder over HTTP: their types, an ETag each, and the headers that keep a page to itself."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from millrace.ledger.domain.errors import NotFound
from millrace.runtime.http import Request, Response

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
}
"""A file of another type is not served."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    text: str
    content_type: str
    etag: str


def read_folder(folder: Path) -> dict[str, StaticFile]:
    """By name. Only these can be asked for, so that no path of a request ever reaches the file system."""
    return {path.name: _read(path) for path in sorted(folder.iterdir()) if path.suffix in TYPES}


def swagger_ui() -> Path:
    """The folder in which Powertools, which every function has, brings the script and the style of Swagger UI."""
    found = find_spec("aws_lambda_powertools")  # to import the part itself would load all of Powertools
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("aws_lambda_powertools is not installed; the layer brings it")
    return Path(found.submodule_search_locations[0], "event_handler/openapi/swagger_ui")


def _read(path: Path) -> StaticFile:
    content = path.read_bytes()
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return StaticFile(content.decode(), TYPES[path.suffix], etag)


def serve(files: Mapping[str, StaticFile], name: str, request: Request, headers: Mapping[str, str]) -> Response:
    """304 if the browser has it. It asks each time, so that files of two versions are never mixed."""
    file = files.get(name)
    if file is None:
        raise NotFound("There is no such file.", field="file")
    told = {"cache-control": "no-cache", "etag": file.etag, **headers}
    has = {tag.strip().removeprefix("W/") for tag in request.header("if-none-match").split(",")}
    if has & {file.etag, "*"}:
        return Response("", 304, file.content_type, told)
    return Response(file.text, 200, file.content_type, told)


def page_headers(without: Collection[str] = (), **more: str) -> dict[str, str]:
    """Nothing but this hub's own files, in nobody's frame, and no text ever becomes markup or script.

    Each keyword adds to a directive: `connect_src="wss://…"`. Directives that are named in `without` are left out.
    """
    rules = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    for name, value in more.items():
        directive = name.replace("_", "-")
        rules[directive] = f"{rules[directive]} {value}"
    return {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in rules.items() if name not in without),
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
    }
