"""Take turns: of one tenant only so many drains run at once, quick and slow ones apart (D6).

A drain that has no turn stands in line, and whoever ends calls the next. A call may be lost, or come twice: whoever
finds room calls those it is due to, and the reminder wakes what is due.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millrace.delivery.domain.drains import DrainLease, Shares, WaitingTarget, called, has_turn
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.ports.drains import Drains, Line
from millrace.delivery.ports.targets import Wake, Wakes


@dataclass(frozen=True, slots=True)
class TakeTurns:
    drains: Drains
    line: Line
    wakes: Wakes
    shares: Shares
    clock: Callable[[], int]

    def has_turn(self, mine: DrainLease) -> bool:
        """Whether a drain that holds its lease may go on; if so, its target stands in line no more."""
        waiting = self.line.waiting(mine.tenant)
        if not has_turn(mine, self.drains.of(mine.tenant), waiting, self.shares, self.clock()):
            return False
        if any(one.target_id == mine.target_id for one in waiting):
            self.line.leave(mine.tenant, mine.target_id)
        return True

    def stays_in_line(self, target: HubTarget) -> bool:
        """Whether it stands there, among the slow ones; if so it has been seen, and will be called."""
        now_ms = self.clock()
        waiting = self.line.waiting(target.tenant)
        found = any(one.target_id == target.id and one.slow and one.waits(now_ms) for one in waiting)
        if found:
            self.line.wait(WaitingTarget(target.tenant, target.id, now_ms, slow=True))
        return found

    def wait(self, mine: DrainLease) -> None:
        """Stand in line. Call this before the lease is given back, and `call` after it."""
        self.line.wait(WaitingTarget(mine.tenant, mine.target_id, mine.since_ms, mine.slow))

    def call(self, tenant: str, *, slow: bool) -> None:
        """Wake those whose turn it is now that there may be room."""
        waiting = self.line.waiting(tenant)
        if waiting:
            now = called(self.drains.of(tenant), waiting, self.shares, self.clock(), slow=slow)
            self.wakes.send([Wake(tenant, one.target_id, slow=slow) for one in now])
