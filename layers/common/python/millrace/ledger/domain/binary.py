"""Packed bytes, read from front to back: numbers by a struct layout, texts with their length before them."""

from __future__ import annotations

import struct
from typing import Any


def text(content: bytes) -> bytes:
    """A text of at most 65,535 bytes, as `Reader.text` reads it."""
    return struct.pack("<H", len(content)) + content


class Reader:
    def __init__(self, packed: bytes) -> None:
        self.packed, self.at = packed, 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(layout, self.packed, self.at)
        self.at += struct.calcsize(layout)
        return values

    def text(self) -> bytes:
        (length,) = self.take("<H")
        self.at += length
        return self.packed[self.at - length : self.at]
