"""Settle shards: when the last shard of a crowd is served, move the ledger's cursor up, and change their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import State
from millrace.live.application.raise_cursor import raise_cursor
from millrace.live.domain.shards import PER_SHARD, Shard, resized
from millrace.live.ports import ShardProgress, Shards

NEIGHBOURS = 16
"""So many shards are looked at first; each further look is at four times as many."""


@dataclass(frozen=True, slots=True)
class SettleShards:
    state: State
    shards: Shards
    clock: Callable[[], int]
    per_shard: int = PER_SHARD

    def __call__(self, ledger: Ledger, shard: Shard, through: int) -> bool:
        """Called when a shard has been served `through` there. Whoever meets a shard that has not stops looking, for
        that shard's worker will look later: nearly everyone reads a few rows, and the last one reads all."""
        seen: dict[int, ShardProgress] = {}
        for first, last in _rounds(shard):
            seen |= self.shards.progress(ledger, shard.count, first, last)
            if any(number not in seen or seen[number].through < through for number in range(first, last + 1)):
                return False
        raise_cursor(self.state, ledger, through)
        now = self.clock()
        if all(each.through == through and each.until_ms <= now for each in seen.values()):
            self._resize(ledger, shard.count, sum(each.found for each in seen.values()))
        return True

    def _resize(self, ledger: Ledger, count: int, connections: int) -> None:
        """Only when nobody is at work, and the cursor is where all shards are: new ones begin there, so that nothing is
        sent twice."""
        wanted = resized(count, connections, self.per_shard)
        if wanted != count:
            self.shards.split(ledger, count, wanted)


def _rounds(shard: Shard) -> Iterator[tuple[int, int]]:
    """All shards, those after this one first, in runs that do not wrap around."""
    size = NEIGHBOURS
    for start, end in ((shard.number, shard.count), (0, shard.number)):
        first = start
        while first < end:
            yield first, min(first + size, end) - 1
            first, size = first + size, size * 4
