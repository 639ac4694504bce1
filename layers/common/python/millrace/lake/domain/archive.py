"""The archive's format (C3, C10): gzipped JSON lines, one per event, in objects that sort by the time of their events.

A line is the catalog envelope with `committed_at` (milliseconds), `ledger`, `tenant`, `partitions` and `client_id`
before it and the payload last:

    {"committed_at":…,"ledger":…,"tenant":…,"partitions":[…],"client_id":…,"event_type":…,…,"payload":{…}}

so that a reader can take the payload as it stands, without writing it anew. The same events give the same bytes under
the same name: whoever tries again makes the same object.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.lake.domain.catalog import Envelope, is_text, problems, to_envelope
from millrace.lake.domain.wrapping import wrap
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import split_key
from millrace.ledger.domain.page import Event
from millrace.ledger.domain.ranges import Ranges

FOLDER = "ledger/"
SUFFIX = ".jsonl.gz"
MAX_LINE_BYTES = 1024 * 1024
"""Far above what an event of 96 KiB takes; a longer line is not ours."""
CORRUPT_OBJECT, EMPTY_OBJECT, FOREIGN_OBJECT = "corrupt_object", "empty_object", "foreign_object"
"""Why a whole object is in quarantine: it cannot be read, it has no line, or it is none of the archive's."""
MAX_TIME_MS = 2**48 - 1
"""The last `committed_at` that an object's name can tell."""
HEAD_FIELDS = ("committed_at", "ledger", "tenant", "partitions", "client_id")

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_text = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class ArchiveObject:
    """What is put, under which name, and the positions it holds by ledger."""

    name: str
    data: bytes
    ranges: Mapping[str, Ranges]
    events: int


def sortable_time(time_ms: int) -> str:
    """The ten characters of a ULID that tell its time: as texts they sort as the times do."""
    return "".join(_CROCKFORD[time_ms >> shift & 31] for shift in range(45, -1, -5))


def time_in(name: str) -> int | None:
    """The time that the name of an archive object begins with; None if it is none of ours."""
    text = name.removeprefix(FOLDER)[:10]
    if not name.startswith(FOLDER) or len(text) < 10 or not set(text) <= set(_CROCKFORD):
        return None
    return sum(_CROCKFORD.index(one) << shift for one, shift in zip(text, range(45, -1, -5), strict=True))


def object_name(time_ms: int, ranges: Mapping[str, Ranges], other: str = "") -> str:
    """The name of the object that holds these positions, the first of which was committed at `time_ms`."""
    held = [[ledger, [list(span) for span in ranges[ledger]]] for ledger in sorted(ranges)]
    named = hashlib.sha256(canonical([held, other] if other else held)).hexdigest()[:32]
    return f"{FOLDER}{sortable_time(time_ms)}-{named}{SUFFIX}"


def tenant_of(ledger: str) -> str:
    """Every ledger's name begins with its contract and its tenant."""
    return split_key(ledger)[1]


class EventWriter:
    """The only writer of archive lines: nothing goes into the archive outside the envelope."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, int, str, bytes]] = []
        self._first_ms: int | None = None

    def add(self, ledger: str, event: Event) -> None:
        """A committed event of the ledger with this name, wrapped."""
        envelope = wrap(ledger, event.record, event.position, event.time_ms)
        self._add(ledger, event.record.partitions, event.origin.client_id, event.time_ms, envelope)

    def add_line(self, line: Any) -> None:
        """An event in the form of a line, as quarantine hands it back repaired. `BadRequest` names what is wrong."""
        errors = line_problems(line)
        if errors:
            raise BadRequest("The line breaks the archive's format.", field=errors[0]["field"], errors=errors)
        try:
            envelope = to_envelope(line)
        except (ValueError, RecursionError) as error:
            raise BadRequest("The line's payload has what JSON cannot tell.", field="payload") from error
        self._add(line["ledger"], line["partitions"], line.get("client_id"), line["committed_at"], envelope)

    def _add(
        self, ledger: str, partitions: Iterable[str], client_id: str | None, time_ms: int, envelope: Envelope
    ) -> None:
        position = envelope.sequence_position or 0
        line = _line(ledger, partitions, client_id, time_ms, envelope)
        self._lines.append((ledger, position, envelope.idempotency_key, line))
        self._first_ms = time_ms if self._first_ms is None else min(self._first_ms, time_ms)

    def __len__(self) -> int:
        return len(self._lines)

    def finish(self, salt: str = "") -> ArchiveObject:
        """The object of all that was added, in order of ledger and position; `ValueError` if that is nothing.

        A `salt` gives the same events another name, under which they are read once more. Then the content is in the
        name as well: with a repaired line it is another object, with the same lines the same.
        """
        if self._first_ms is None:
            raise ValueError("an archive object holds at least one event")
        self._lines.sort()
        positions: dict[str, list[int]] = {}
        for ledger, position, _, _ in self._lines:
            positions.setdefault(ledger, []).append(position)
        ranges = {ledger: Ranges.of(held) for ledger, held in positions.items()}
        data = b"\n".join(line for *_, line in self._lines) + b"\n"
        # Positions tell committed events apart; where they are missing, or lines were repaired, the content has to.
        positioned = all(position for _, position, _, _ in self._lines)
        content = "" if positioned and not salt else hashlib.sha256(data).hexdigest()
        return ArchiveObject(object_name(self._first_ms, ranges, content + salt), _gzip(data), ranges, len(self._lines))


def line_problems(line: Any) -> list[dict[str, str]]:
    """What is wrong with a line, field by field. Whatever a door has committed makes a line with nothing wrong."""
    if not isinstance(line, dict):
        return [{"field": "line", "message": "must be an object"}]
    errors = [
        {"field": field, "message": "must be a non-empty string"}
        for field in ("ledger", "tenant")
        if not line.get(field) or not is_text(line[field])
    ]
    if not errors and split_key(line["ledger"])[1:2] != [line["tenant"]]:
        errors.append({"field": "tenant", "message": "must be the tenant that the ledger's name tells"})
    committed = line.get("committed_at")
    if isinstance(committed, bool) or not isinstance(committed, int) or not 0 <= committed <= MAX_TIME_MS:
        errors.append({"field": "committed_at", "message": "must be a time in milliseconds since 1970"})
    partitions = line.get("partitions")
    if not isinstance(partitions, list) or not all(map(is_text, partitions)):
        errors.append({"field": "partitions", "message": "must be a list of strings"})
    if not is_text(line.get("client_id", "")):
        errors.append({"field": "client_id", "message": "must be a string"})
    envelope = {name: value for name, value in line.items() if name not in HEAD_FIELDS}
    return errors + problems(envelope, key_required=True)


def read_lines(data: bytes) -> Iterator[Any]:
    """The lines of an object; of one that `EventWriter` made each is a dict. `ValueError` for one that is not JSON."""
    for line in gzip.decompress(data).splitlines():
        try:
            yield json.loads(line)
        except RecursionError as error:
            raise ValueError("a line nests too deeply to be read") from error


def _line(ledger: str, partitions: Iterable[str], client_id: str | None, time_ms: int, envelope: Envelope) -> bytes:
    head: dict[str, Any] = {
        "committed_at": time_ms,
        "ledger": ledger,
        "tenant": tenant_of(ledger),
        "partitions": list(partitions),
    }
    if client_id is not None:
        head["client_id"] = client_id
    for field in ("event_type", "event_version", "idempotency_key", "occurred_at", "source"):
        head[field] = getattr(envelope, field)
    for field in ("trace_id", "sequence_position"):
        if getattr(envelope, field) is not None:
            head[field] = getattr(envelope, field)
    return _text(head)[:-1].encode() + b',"payload":' + envelope.payload + b"}"


def _gzip(data: bytes) -> bytes:
    """Without the time in the header, and with the header that every version of Python writes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=buffer, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()
