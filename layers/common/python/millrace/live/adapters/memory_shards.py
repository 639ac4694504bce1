"""In-memory shards of crowds, and a crew that only notes whom it was to serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from millrace.ledger.adapters.memory import MemoryState
from millrace.ledger.domain.names import Ledger
from millrace.live.domain.shards import Shard
from millrace.live.ports import ShardProgress, Share


@dataclass(slots=True)
class MemoryShards:
    state: MemoryState
    rows: dict[tuple[str, Shard], tuple[str, ShardProgress]] = field(default_factory=dict)
    """Who took each shard last, and how far it is served."""
    lock: Lock = field(default_factory=Lock)

    def split(self, ledger: Ledger, before: int, count: int) -> bool:
        with self.state.lock:
            if self.state.shards.get(ledger.name, 1) not in (before, count):
                return False
            self.state.shards[ledger.name] = count
            return True

    def progress(self, ledger: Ledger, count: int, first: int, last: int) -> Mapping[int, ShardProgress]:
        shards = [Shard(number, count) for number in range(first, last + 1)]
        with self.lock:
            rows = {shard.number: self.rows.get((ledger.name, shard)) for shard in shards}
        return {number: row[1] for number, row in rows.items() if row is not None}

    def take(self, ledger: Ledger, shard: Shard, holder: str, now_ms: int, until_ms: int) -> ShardProgress | None:
        with self.lock:
            key = (ledger.name, shard)
            by, progress = self.rows.get(key, ("", ShardProgress()))
            if by != holder and progress.until_ms > now_ms:
                return None
            self.rows[key] = (holder, replace(progress, until_ms=until_ms))
            return self.rows[key][1]

    def move(self, ledger: Ledger, shard: Shard, holder: str, progress: ShardProgress) -> bool:
        with self.lock:
            key = (ledger.name, shard)
            if self.rows.get(key, ("", None))[0] != holder:
                return False
            self.rows[key] = (holder, progress)
            return True


@dataclass(slots=True)
class MemoryCrew:
    called: list[Share] = field(default_factory=list)

    def call(self, shares: Sequence[Share]) -> None:
        self.called.extend(shares)
