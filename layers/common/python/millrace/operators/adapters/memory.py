"""Scans in memory, and a place that is kept no longer than the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog
from millrace.ledger.domain.names import Ledger, join_key, split_key
from millrace.ledger.ports import Claim, Claimed
from millrace.operators.ports import Key, Scanned, StoredClaim

AT_ONCE = 20
"""Of one part of a scan."""


@dataclass(frozen=True, slots=True)
class MemoryLogScan:
    log: MemoryLog

    def count(self) -> int:
        return sum(map(len, self.log.pages.values()))

    def scan(self, segment: int, segments: int, after: Key | None) -> Scanned[str]:
        with self.log.lock:
            names = _of_segment(
                [name for name, pages in self.log.pages.items() if 1 in pages], segment, segments, after
            )
        return Scanned(names[:AT_ONCE], min(len(names), AT_ONCE), _going_on(names))


@dataclass(frozen=True, slots=True)
class MemoryClaimScan:
    claims: MemoryClaims

    def count(self) -> int:
        return len(self.claims.items)

    def scan(self, segment: int, segments: int, after: Key | None) -> Scanned[StoredClaim]:
        with self.claims.lock:
            by_key = {join_key(*key): claim for key, claim in self.claims.items.items()}
        keys = _of_segment(list(by_key), segment, segments, after)
        found = [StoredClaim(key, by_key[key].ledger, by_key[key].seen) for key in keys[:AT_ONCE]]
        return Scanned(found, len(found), _going_on(keys))

    def lower(self, claim: StoredClaim, seen: int) -> bool:
        scope, id_ = split_key(claim.key)
        with self.claims.lock:
            if self.claims.items[scope, id_] != Claim(claim.ledger, claim.seen):
                return False
            self.claims.items[scope, id_] = Claim(claim.ledger, seen)
            return True

    def missing(self, ledger: Ledger, ids: Sequence[str]) -> Sequence[str]:
        return [id_ for id_ in ids if self.claims.find(ledger, id_) is None]

    def create(self, ledger: Ledger, ids: Sequence[str], seen: int) -> Claimed:
        return self.claims.create(ledger, ids, seen)


@dataclass(slots=True)
class MemoryPlace:
    content: dict[str, Any] | None = None
    saves: int = field(default=0)

    def load(self) -> dict[str, Any] | None:
        return deepcopy(self.content)

    def save(self, content: Mapping[str, Any]) -> None:
        self.content, self.saves = deepcopy(dict(content)), self.saves + 1

    def clear(self) -> None:
        self.content = None


def _of_segment(names: Sequence[str], segment: int, segments: int, after: Key | None) -> list[str]:
    mine = sorted(name for name in names if crc32(name.encode()) % segments == segment)
    return [name for name in mine if after is None or name > after["name"]]


def _going_on(names: Sequence[str]) -> Key | None:
    return {"name": names[AT_ONCE - 1]} if len(names) > AT_ONCE else None
