"""Call the crew: a worker for each shard of a ledger's crowd that has something due and that nobody holds.

The caller sends nothing and moves no cursor over what it only asked for. A call that is lost is therefore found by the
sweep, which rings for the ledger, and then those shards are called that are still behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Log, State
from millrace.live.application.raise_cursor import raise_cursor
from millrace.live.domain.shards import PER_SHARD, Shard, count_for, estimated
from millrace.live.ports import Crew, ShardProgress, Shards, Share, Subscription

Audience = Mapping[str, Sequence[Subscription]]
"""Subscriptions by connection."""
NOT_SERVED = ShardProgress()


@dataclass(frozen=True, slots=True)
class CallCrew:
    log: Log
    state: State
    shards: Shards
    crew: Crew
    clock: Callable[[], int]
    per_shard: int = PER_SHARD

    def takes(self, ledger: Ledger, audience: Audience, cursor: int) -> bool:
        """Whether they are too many for one function: then the ledger's crowd is split, and the crew is called. They
        need not be all, if they are too many."""
        if sum(map(len, audience.values())) <= self.per_shard:
            return False
        count = max(2, count_for(estimated(audience, self.per_shard), self.per_shard))
        while not self.shards.split(ledger, 1, count):
            already = self.state.marks(ledger).shards
            if already > 1:
                count = already
                break
        self(ledger, count, cursor)
        return True

    def __call__(self, ledger: Ledger, count: int, cursor: int) -> None:
        """Whoever holds a shard looks at the log once more after letting it go, so nobody has to be called for it."""
        found = self.shards.progress(ledger, count, 0, count - 1)
        progress = [found.get(number, NOT_SERVED) for number in range(count)]
        through = [max(cursor, each.through) for each in progress]
        now = self.clock()
        free = [number for number, each in enumerate(progress) if each.until_ms <= now]
        furthest = max((through[number] for number in free), default=cursor)
        if not self.log.read(ledger, furthest, 1).pages:
            free = [number for number in free if through[number] < furthest]
        if free:
            self.crew.call([Share(ledger.name, Shard(number, count), through[number]) for number in free])
        if min(through) > cursor:
            raise_cursor(self.state, ledger, min(through))
