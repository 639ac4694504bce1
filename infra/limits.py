"""Keeps the limits that documents state equal to the code: `make generated` writes the values, a test names stale ones.

A limit is defined in one row of the table in docs/contracts.md, whose name has the anchor `limit-NAME`. Every other
page links to that row, `[1 MiB](contracts.md#limit-http-body)`. A line of YAML ends in the comment `# limit: NAME`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from millrace.lake.domain import catalog
from millrace.ledger.domain import naming, strict_json
from millrace.live.domain import messages
from millrace.realtime.application import publish
from millrace.realtime.domain import time_order
from millrace.realtime.doors import requests as replay
from millrace.runtime import http
from millrace.runtime import requests as doors
from millrace.streams.domain import envelope
from millrace.sync.domain import read, submit

ROOT = Path(__file__).parents[1]
DEFINITIONS = ROOT / "docs/contracts.md"
PAGES = (
    ROOT / "README.md",
    *(
        ROOT / f"docs/{page}.md"
        for page in ("contracts", "guarantees", "websocket", "realtime", "streams", "archive", "operations")
    ),
)
ASYNCAPI = ROOT / "docs/asyncapi.yaml"
DOCUMENTS = (*PAGES, ASYNCAPI)

_DEFINED = re.compile(r'(?P<before><a id="limit-(?P<name>[a-z-]+)"></a>[^|\n]*\| )(?P<text>[^|\n]+?)(?P<after> \|)')
_LINKED = re.compile(r"(?P<before>\[)(?P<text>[^\]\n]+)(?P<after>\]\([^)\s]*#limit-(?P<name>[a-z-]+)\))")
_COMMENTED = re.compile(r"(?P<before>)\b(?P<text>[0-9]+)(?P<after>[^\n0-9]*# limit: (?P<name>[a-z-]+)$)", re.MULTILINE)
PATTERNS = (_DEFINED, _LINKED, _COMMENTED)


def size(number: int) -> str:
    """Bytes as people write them: `1 MiB`, `96 KiB`, `128 KB`, `128 bytes`."""
    units = {1024 * 1024: "MiB", 1024: "KiB", 1000: "KB"}
    for factor, unit in units.items():
        if number % factor == 0:
            return f"{number // factor} {unit}"
    return f"{number} bytes"


SIZES: Mapping[str, int] = {
    "http-body": http.MAX_BODY_BYTES,
    "message": messages.MAX_MESSAGE_BYTES,
    "event": submit.MAX_EVENT_BYTES,
    "realtime-event": publish.MAX_EVENT_BYTES,
    "stream-event": envelope.MAX_STORED_BYTES,
    "catalog-event": catalog.MAX_EVENT_BYTES,
    "http-page": read.HTTP_PAGE_BYTES,
    "message-page": messages.PAGE_BYTES,
    "id": submit.MAX_ID_BYTES,
    "partition": submit.MAX_PARTITION_BYTES,
    "name": naming.MAX_NAME_BYTES,
    "replay-page": time_order.PAGE_BYTES,
}
COUNTS: Mapping[str, int] = {
    "batch": submit.MAX_BATCH,
    "other-batch": doors.MAX_BATCH,
    "partitions": submit.MAX_PARTITIONS,
    "nesting": strict_json.MAX_DEPTH,
    "message-rate": messages.MAX_MESSAGES_PER_SECOND,
    "in-flight": messages.MAX_IN_FLIGHT,
    "connect-seconds": messages.CONNECT_SECONDS,
    "sync-smallest": read.LIMIT_MIN,
    "sync-default": read.LIMIT_DEFAULT,
    "sync-largest": read.LIMIT_MAX,
    "replay-default": replay.LIMIT_DEFAULT,
    "replay-largest": replay.LIMIT_MAX,
}
VALUES: Mapping[str, int] = {**SIZES, **COUNTS}
TEXTS: Mapping[str, str] = {
    **{name: size(number) for name, number in SIZES.items()},
    **{name: str(number) for name, number in COUNTS.items()},
}


@dataclass(frozen=True, slots=True)
class Mention:
    """A place that states a limit."""

    line: int
    name: str
    text: str
    expected: str


def mentions(document: str) -> Iterator[Mention]:
    for pattern in PATTERNS:
        for found in pattern.finditer(document):
            line = document.count("\n", 0, found.start()) + 1
            yield Mention(line, found["name"], found["text"], _expected(found))


def current(document: str) -> str:
    """The document with every limit it states as the code has it."""
    for pattern in PATTERNS:
        document = pattern.sub(lambda found: found["before"] + _expected(found) + found["after"], document)
    return document


def _expected(found: re.Match[str]) -> str:
    return str(VALUES[found["name"]]) if found.re is _COMMENTED else TEXTS[found["name"]]


def files() -> dict[Path, str]:
    return {path: current(path.read_text()) for path in PAGES}
