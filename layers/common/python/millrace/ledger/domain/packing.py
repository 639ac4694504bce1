"""Packing: a page's records as bytes, in columns, deflated when that saves a write unit (`make bench` has the figures).

Layout after the format byte, little-endian: u16 records, u16 names, u16 name lengths, u16 id lengths,
u32 body lengths + 1 (0 = pruned), u8 partitions per record, u16 name numbers, digests, names, ids, bodies.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace

from millrace.ledger.domain.binary import Reader, text
from millrace.ledger.domain.canonical import DIGEST_BYTES
from millrace.ledger.domain.page import Origin, Page, Part, Record

RAW, DEFLATED = b"\x01", b"\x02"
WRITE_UNIT = 1024


def pack(records: Sequence[Record], overhead: int = 120) -> bytes:
    """`overhead`: what the item holds beside these bytes, to know when deflating crosses a write unit."""
    raw = _columns(records)
    if len(raw) + overhead > WRITE_UNIT:
        deflated = zlib.compress(raw, 1)
        if _units(len(deflated) + overhead) < _units(len(raw) + overhead):
            return DEFLATED + deflated
    return RAW + raw


def unpack(packed: bytes) -> tuple[Record, ...]:
    """The records of `pack`. Raises ValueError on a format this code does not know."""
    kind = packed[:1]
    if kind == DEFLATED:
        raw = zlib.decompress(packed[1:])
    elif kind == RAW:
        raw = packed[1:]
    else:
        raise ValueError(f"unknown page format {kind!r}")
    count, name_count = struct.unpack_from("<HH", raw)
    at = 4
    lengths = struct.unpack_from(f"<{name_count}H{count}H", raw, at)
    at += 2 * (name_count + count)
    bodies = struct.unpack_from(f"<{count}I", raw, at)
    at += 4 * count
    per_record = raw[at : at + count]
    at += count
    numbers = struct.unpack_from(f"<{sum(per_record)}H", raw, at)
    at += 2 * len(numbers)
    digests_at = at
    at += DIGEST_BYTES * count
    texts: list[str] = []
    for length in lengths:
        texts.append(raw[at : at + length].decode())
        at += length
    names, ids = texts[:name_count], texts[name_count:]
    records: list[Record] = []
    used = 0
    for row in range(count):
        named = numbers[used : used + per_record[row]]
        used += per_record[row]
        body: bytes | None = None
        if bodies[row]:
            body = raw[at : at + bodies[row] - 1]
            at += bodies[row] - 1
        start = digests_at + DIGEST_BYTES * row
        records.append(Record(ids[row], raw[start : start + DIGEST_BYTES], body, tuple(names[n] for n in named)))
    return tuple(records)


def pack_parts(parts: Sequence[Part]) -> bytes:
    """u16 parts, u16 origins; of each origin two texts; of each part u16 count, u16 origin, and its nonce as a text.

    Which call a part belonged to is kept beside this: `traces_of`."""
    numbers: dict[Origin, int] = {}
    origins = [Origin(part.origin.client_id, part.origin.connection) for part in parts]
    rows = [
        (part.count, numbers.setdefault(origin, len(numbers)), part.nonce)
        for part, origin in zip(parts, origins, strict=True)
    ]
    packed = [struct.pack("<HH", len(rows), len(numbers))]
    packed += [text(name.encode()) for origin in numbers for name in (origin.client_id, origin.connection)]
    packed += [struct.pack("<HH", count, origin) + text(nonce) for count, origin, nonce in rows]
    return b"".join(packed)


def unpack_parts(packed: bytes) -> tuple[Part, ...]:
    reader = Reader(packed)
    parts, origins = reader.take("<HH")
    known = [Origin(reader.text().decode(), reader.text().decode()) for _ in range(origins)]
    rows = [(*reader.take("<HH"), reader.text()) for _ in range(parts)]
    return tuple(Part(count, known[origin], nonce) for count, origin, nonce in rows)


def traces_of(page: Page) -> str:
    """The `traceparent` of each request of a page, with commas between; empty if none has one."""
    traces = [part.origin.trace for part in page.parts] or [page.origin.trace]
    return ",".join(traces) if any(traces) else ""


def with_traces(page: Page, traces: str) -> Page:
    """A page with what `traces_of` made of it."""
    found = traces.split(",")
    if not traces or len(found) != max(1, len(page.parts)):
        return page
    parts = tuple(
        replace(part, origin=replace(part.origin, trace=trace))
        for part, trace in zip(page.parts, found if page.parts else (), strict=True)
    )
    return replace(page, origin=replace(page.origin, trace=found[0]), parts=parts)


def _columns(records: Sequence[Record]) -> bytes:
    numbers: dict[str, int] = {}
    used = [numbers.setdefault(name, len(numbers)) for record in records for name in record.partitions]
    names = [name.encode() for name in numbers]
    ids = [record.id.encode() for record in records]
    sizes = [0 if record.body is None else len(record.body) + 1 for record in records]
    count = len(records)
    return b"".join(
        (
            struct.pack(
                f"<HH{len(names)}H{count}H{count}I{count}B{len(used)}H",
                count,
                len(names),
                *map(len, names),
                *map(len, ids),
                *sizes,
                *(len(record.partitions) for record in records),
                *used,
            ),
            *(record.digest for record in records),
            *names,
            *ids,
            *(record.body for record in records if record.body is not None),
        )
    )


def _units(size: int) -> int:
    return -(-size // WRITE_UNIT)
