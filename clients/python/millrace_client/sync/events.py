"""Makes items for the hub of events as a person writes them: on the command line, or one per line in a file."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from millrace.ledger.domain import strict_json
from millrace.ledger.domain.errors import BadRequest, TooLarge
from millrace_client.errors import Usage

BATCH = 100
MOST_BYTES = 1024 * 1024

Event = dict[str, Any]


def one(kind: str, payload: str, partitions: Sequence[str], event_id: str | None) -> Event:
    return {
        "id": str(uuid.uuid4()) if event_id is None else event_id,
        "partitions": list(partitions),
        "event": {"type": kind, "payload": _json(_text(payload), "--payload")},
    }


def value_of(text: str, where: str) -> Any:
    """JSON as a person gives it: the text itself, @file, or - for standard input. Raises `Usage`."""
    return _json(_text(text), where)


def objects_of(file: str) -> list[Event]:
    """The objects of a file, one a line (- for standard input). Raises `Usage`."""
    values = [_json(line, f"line {number}") for number, line in enumerate(lines_of(file), 1) if line.strip()]
    if not values or not all(isinstance(one, dict) for one in values):
        raise Usage(f"{file} must have one JSON object a line.")
    return values


def from_lines(lines: Iterable[str], partitions: Sequence[str]) -> Iterator[Event]:
    """Each line is an event as the hub takes it, or just `{"type", "payload"}`; a missing id is made up."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _completed(_json(line, f"line {number}"), partitions, number)


def lines_of(file: str) -> list[str]:
    """All of them before the first is sent: a bad last line should not leave half a file submitted."""
    return (sys.stdin.read() if file == "-" else _read(file)).splitlines()


def batches(events: Iterable[Event], size: int = BATCH) -> Iterator[list[Event]]:
    rest = iter(events)
    while batch := list(islice(rest, size)):
        yield batch


def _completed(line: Any, partitions: Sequence[str], number: int) -> Event:
    if not isinstance(line, dict):
        raise Usage(f"line {number} is not a JSON object.")
    event = line if "event" in line else {**line, "event": {"type": line.get("type"), "payload": line.get("payload")}}
    kept = {name: event[name] for name in ("id", "partitions", "event", "client_id", "meta") if name in event}
    if "partitions" not in kept and not partitions:
        raise Usage(f"line {number} has no partitions, and there is no --partition.")
    return {"id": str(uuid.uuid4()), "partitions": list(partitions)} | kept


def _text(payload: str) -> str:
    if payload == "-":
        return sys.stdin.read()
    return _read(payload[1:]) if payload.startswith("@") else payload


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Usage(f"Cannot read {file}: {error}") from error


def _json(text: str, where: str) -> Any:
    """As strict as the hub: what it would refuse, or what would be lost on the way, is refused here."""
    try:
        return strict_json.parse(text.encode("utf-8", "surrogatepass"), MOST_BYTES)
    except BadRequest as error:
        raise Usage(f"{where}: {error.message.replace('The body', 'It').replace('the body', 'it')}") from error
    except TooLarge as error:
        raise Usage(f"{where} is larger than a request may be.") from error
