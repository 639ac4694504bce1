"""Encodings of a page compared: bytes, write units, and CPU to pack and unpack."""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgpack

from millrace.ledger.domain.packing import DEFLATED, RAW, _columns, pack, unpack
from millrace.ledger.domain.page import Record
from tests.bench.events import KINDS, drafts
from tests.bench.report import Section, Table
from tests.bench.rig import page_of
from tests.bench.sizes import write_units

SIZES = (1, 25, 100)
REPETITIONS = 5
EVENTS = 2_000
ITEM_REST = 120
"""Key, time, origin and nonce: what the item holds beside the packed records."""

Records = Sequence[Record]


@dataclass(frozen=True, slots=True)
class Encoding:
    name: str
    pack: Callable[[Records], bytes]
    unpack: Callable[[bytes], Records]


def _json(records: Records) -> bytes:
    rows = [
        [one.id, base64.b64encode(one.digest).decode(), (one.body or b"").decode(), list(one.partitions)]
        for one in records
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()


def _from_json(packed: bytes) -> Records:
    return tuple(
        Record(id_, base64.b64decode(digest), body.encode(), tuple(names))
        for id_, digest, body, names in json.loads(packed)
    )


def _msgpack(records: Records) -> bytes:
    rows = [(one.id, one.digest, one.body, one.partitions) for one in records]
    packed: bytes = msgpack.packb(rows)
    return packed


def _from_msgpack(packed: bytes) -> Records:
    return tuple(Record(id_, digest, body, tuple(names)) for id_, digest, body, names in msgpack.unpackb(packed))


def _deflated(level: int, records: Records) -> bytes:
    return DEFLATED + zlib.compress(_columns(records), level)


ENCODINGS = (
    Encoding("ours: columns, zlib 1 if it saves a unit", partial(pack, overhead=ITEM_REST), unpack),
    Encoding("columns, raw", lambda records: RAW + _columns(records), unpack),
    Encoding("columns, always zlib 1", partial(_deflated, 1), unpack),
    Encoding("columns, always zlib 6", partial(_deflated, 6), unpack),
    Encoding("JSON", _json, _from_json),
    Encoding(
        "JSON, zlib 1",
        lambda records: zlib.compress(_json(records), 1),
        lambda packed: _from_json(zlib.decompress(packed)),
    ),
    Encoding("msgpack", _msgpack, _from_msgpack),
    Encoding(
        "msgpack, zlib 1",
        lambda records: zlib.compress(_msgpack(records), 1),
        lambda packed: _from_msgpack(zlib.decompress(packed)),
    ),
)


def run() -> Section:
    rows = [_row(kind, size, encoding) for kind in KINDS for size in SIZES for encoding in ENCODINGS]
    return Section([Table("encodings", f"Encodings of a page; CPU is the best of {REPETITIONS}", rows)])


def _row(kind: str, size: int, encoding: Encoding) -> dict[str, Any]:
    records = page_of(drafts(kind, size, 7), 1).records
    packed = encoding.pack(records)
    assert encoding.unpack(packed) == records
    return {
        "payload": kind,
        "events": size,
        "encoding": encoding.name,
        "bytes": len(packed),
        "write units": write_units(len(packed) + ITEM_REST),
        "pack, µs per event": _cpu(partial(encoding.pack, records), size),
        "unpack, µs per event": _cpu(partial(encoding.unpack, packed), size),
    }


def _cpu(work: Callable[[], object], size: int) -> float:
    best = float("inf")
    for _ in range(REPETITIONS):
        started = time.process_time()
        for _ in range(EVENTS // size):
            work()
        best = min(best, time.process_time() - started)
    return round(best / EVENTS * 1e6, 2)
