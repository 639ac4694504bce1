"""Shards of a crowd: how many there are, and which connections each of them holds."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

PER_SHARD = 300
"""Connections that one worker serves. A ledger with fewer listeners has one shard: the fan-out serves it itself."""
MOST_SHARDS = 1_024
SLOTS = 65_536
FEW, MANY = 4, 2
"""Shards are made fewer when their connections fit into a quarter of them, and more when each has twice its share:
so they do not come and go with a few connections."""
OVERFULL = 4
"""A shard with so many times the connections it should have is split at once, before anything is sent."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` equal ranges of the slots that connections fall into; count is a power of two."""

    number: int
    count: int

    @property
    def first(self) -> str:
        """Sort keys of its connections are at least this; the first shard has all that are lower, too."""
        return f"{self.number * SLOTS // self.count:04x}" if self.number else ""

    @property
    def end(self) -> str:
        """Sort keys of its connections are below this; empty: there is no end."""
        return f"{(self.number + 1) * SLOTS // self.count:04x}" if self.number + 1 < self.count else ""

    def holds(self, key: str) -> bool:
        return self.first <= key and (not self.end or key < self.end)


EVERYONE = Shard(0, 1)


def slot_of(connection: str) -> int:
    return zlib.crc32(connection.encode()) % SLOTS


def key_of(connection: str, id_: str) -> str:
    """Where a subscription stands among those of its ledger: all of a connection's are in one shard."""
    return f"{slot_of(connection):04x}#{connection}#{id_}"


def estimated(connections: Iterable[str], read: int) -> int:
    """How many connections there are, if these are the first by their keys: so many of them fill so many slots."""
    slots = sorted(map(slot_of, connections))
    return max(len(slots), read * SLOTS // (slots[min(read, len(slots)) - 1] + 1))


def count_for(connections: int, per_shard: int = PER_SHARD) -> int:
    """The least power of two that gives no shard more than its share, if connections spread evenly."""
    count = 1
    while count * per_shard < connections and count < MOST_SHARDS:
        count *= 2
    return count


def resized(count: int, connections: int, per_shard: int) -> int:
    """Into how many shards so many connections should be split, if they are split into `count` now."""
    wanted = count_for(connections, per_shard)
    if wanted > count:
        return wanted if connections > MANY * count * per_shard else count
    return wanted if connections * FEW <= count * per_shard else count


def fading(found: int, before: int) -> int:
    """How many connections a shard counts as having, so that one event for a few of them makes it no smaller."""
    return max(found, before * 3 // 4)


def is_overfull(count: int, connections: int, per_shard: int) -> bool:
    """Whether a shard with so many connections, of so many shards, is to be split before anything is sent to them."""
    return connections > OVERFULL * per_shard and count < MOST_SHARDS
