"""Serve a shard: bring what is new in a ledger to the connections of one shard, by the same steps as a broadcast.

A shard has a place of its own in the log. Whoever serves it holds it for a while, so that two do not send the same:
that saves work and decides nothing. Who finds it held goes away, so the holder looks at the log again after letting go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millrace.ledger.domain.consumers import FAN_OUT_CONSUMER
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import contiguous
from millrace.live.application.broadcast import Broadcast, is_all, slices
from millrace.live.application.call_crew import CallCrew
from millrace.live.application.settle_shards import SettleShards
from millrace.live.domain.shards import MOST_SHARDS, count_for, fading, is_overfull
from millrace.live.ports import ShardProgress, Shards, Share

HOLD_MS = 30_000
"""Longer than a slice takes. It is held anew with every slice; whoever dies holds it no longer than this."""
WORK_MS = 20_000
"""Then another worker goes on, so that no function runs out of time within a slice."""
SLICE_EVENTS = 10


@dataclass(frozen=True, slots=True)
class ServeShard:
    broadcast: Broadcast
    call_crew: CallCrew
    shards: Shards
    settle: SettleShards
    clock: Callable[[], int]
    new_id: Callable[[], str]

    def __call__(self, share: Share) -> bool:
        """False if another worker holds the shard."""
        ledger, me, ends_ms = Ledger.to_read(share.ledger), self.new_id(), self.clock() + WORK_MS
        while (held := self._take(ledger, share, me)) is not None:
            reached = self._serve(ledger, replace(share, base=max(share.base, held.through)), held.found, me, ends_ms)
            if reached is None:
                return True  # another goes on
            share = replace(share, base=reached)
            if not self.broadcast.log.read(ledger, reached, 1).pages:
                self.settle(ledger, share.shard, reached)
                return True
        return False

    def _take(self, ledger: Ledger, share: Share, me: str) -> ShardProgress | None:
        now = self.clock()
        return self.shards.take(ledger, share.shard, me, now, now + HOLD_MS)

    def _serve(self, ledger: Ledger, share: Share, found: int, me: str, ends_ms: int) -> int | None:
        """Up to where it is served now, and let go; None if somebody else goes on from there."""
        place = share.base
        while True:
            run = self.broadcast.log.read(ledger, place)
            read = list(contiguous(run.pages, place))
            parts = list(slices(read, SLICE_EVENTS))
            for number, pages in enumerate(parts, 1):
                events = [event for page in pages for event in page.events()]
                audience = self.broadcast.find(ledger, events, share.shard)
                if self._is_overfull(ledger, share, len(audience)):
                    self.shards.move(ledger, share.shard, me, ShardProgress(place, 0, found))
                    self._call_again(ledger)
                    return None
                self.broadcast.deliver(audience, events)
                place, found = pages[-1].end, fading(len(audience), found)
                now = self.clock()
                last, over = number == len(parts) and is_all(run, read), now >= ends_ms
                until = 0 if last or over else now + HOLD_MS
                if not self.shards.move(ledger, share.shard, me, ShardProgress(place, until, found)):
                    return None
                if last:
                    return place
                if over:
                    self.call_crew.crew.call([replace(share, base=place)])
                    return None
            if not read:
                return place if self.shards.move(ledger, share.shard, me, ShardProgress(place, 0, found)) else None

    def _is_overfull(self, ledger: Ledger, share: Share, connections: int) -> bool:
        """Whether the crowd has grown so fast that it is split anew before anything is sent, by this one or another."""
        per_shard, count = self.call_crew.per_shard, share.shard.count
        if not is_overfull(count, connections, per_shard):
            return False
        more = min(MOST_SHARDS, count * count_for(connections, per_shard))
        return self.shards.split(ledger, count, more) or self.broadcast.state.marks(ledger).shards > count

    def _call_again(self, ledger: Ledger) -> None:
        marks = self.broadcast.state.marks(ledger)
        self.call_crew(ledger, marks.shards, marks.cursors.get(FAN_OUT_CONSUMER, 0))
