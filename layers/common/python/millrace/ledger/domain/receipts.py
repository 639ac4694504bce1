"""Receipts as bytes: small, because a leader writes the latest ones again with every page.

Layout, little-endian: u8 receipts; of each: u64 end, u64 time, u16 requests, u16 looks; of each request: nonce,
u16 placings; of each placing: u16 start, u16 count, u16 positions below the end; of each look: nonce.
A nonce is u16 length and bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from millrace.ledger.domain.binary import Reader, text
from millrace.ledger.domain.waiting import Placing, Receipt

MOST_BYTES = 900
"""With the rest of the board, what fits one write unit."""
LEAST_KEPT = 3
"""However large: whoever looks in between must not miss one."""


def latest(receipts: Sequence[Receipt]) -> list[Receipt]:
    """The receipts that stay on the board: the newest, as many as are cheap to write, oldest first."""
    kept: list[Receipt] = []
    size = 0
    for receipt in reversed(receipts):
        size += len(_pack_one(receipt))
        if size > MOST_BYTES and len(kept) >= LEAST_KEPT:
            break
        kept.append(receipt)
    return kept[::-1]


def pack(receipts: Sequence[Receipt]) -> bytes:
    return struct.pack("<B", len(receipts)) + b"".join(_pack_one(receipt) for receipt in receipts)


def _pack_one(receipt: Receipt) -> bytes:
    made = [struct.pack("<QQHH", receipt.end, receipt.time_ms, len(receipt.placed), len(receipt.look))]
    for nonce, placings in receipt.placed.items():
        made += [text(nonce), struct.pack("<H", len(placings))]
        made += [struct.pack("<HHH", one.start, one.count, receipt.end - one.position) for one in placings]
    made += [text(nonce) for nonce in sorted(receipt.look)]
    return b"".join(made)


def unpack(packed: bytes) -> list[Receipt]:
    reader = Reader(packed)
    (count,) = reader.take("<B")
    return [_unpack_one(reader) for _ in range(count)]


def _unpack_one(reader: Reader) -> Receipt:
    end, time_ms, requests, looks = reader.take("<QQHH")
    placed: dict[bytes, Sequence[Placing]] = {}
    for _ in range(requests):
        nonce = reader.text()
        (placings,) = reader.take("<H")
        runs = [reader.take("<HHH") for _ in range(placings)]
        placed[nonce] = [Placing(start, count, end - below) for start, count, below in runs]
    return Receipt(end, time_ms, placed, frozenset(reader.text() for _ in range(looks)))
