"""Call the crew: a worker for each shard of a ledger's crowd that has something due and that nobody holds.

The caller sends nothing and moves no cursor over what it only asked for. A call that is lost is therefore found by the
sweep, which rings for the ledger, and then those shards are called that are still behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Log, State
from millrace.live.application.raise_cursor import raise_cursor
from millrace.live.domain.shards import PER_SHARD, Shard, count_for
from millrace.live.ports import Crew, Progress, Shards, Share

NOT_SERVED = Progress()


@dataclass(frozen=True, slots=True)
class CallCrew:
    log: Log
    state: State
    shards: Shards
    crew: Crew
    clock: Callable[[], int]
    per_shard: int = PER_SHARD

    def takes(self, ledger: Ledger, connections: int, cursor: int) -> bool:
        """Whether they are too many for one function: then the ledger's crowd is split, and the crew is called."""
        if connections <= self.per_shard:
            return False
        count = count_for(connections, self.per_shard)
        if not self.shards.split(ledger, 1, count):
            count = self.state.marks(ledger).shards
        if count > 1:
            self(ledger, count, cursor)
        return count > 1

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
