"""A drain's lease: who serves a target, since when, and until when nobody else may (D6).

One drain of a target runs at a time because it holds a lease. It renews the lease while it lives; when it dies, the
lease ends by itself, and whoever comes next goes on. A lease keeps requests apart and decides nothing else: what a
target has is in the delivery ledger alone, so two drains at once would cost a request sent twice, never an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

LEASE_MS = 9_000
"""How long a lease lasts without being renewed: the longest that a dead drain keeps others away."""
BEAT_MS = 3_000
"""How often a drain renews its lease, and keeps its wake-up out of other hands."""
HIDDEN_MS = LEASE_MS + BEAT_MS
"""How long after the last beat a drain's wake-up comes again: by then the lease has ended."""
SAFE_MS = 1_000
"""So much of a lease must be left before a request is sent: clocks differ."""
SLICE_MS = 10_000
"""How long a drain goes on before it makes room for others; it asks for its next turn itself."""

QUICK_MS = 2_000
"""A target that answers each request within this time is quick. Any other is slow, and so is one nobody has tried."""
EXPECTED_MS = 30_000
"""How long a wake-up that was announced keeps others from being sent. One that is not there by then may be lost."""
FORGOTTEN_MS = 75_000
"""A target that waits for its turn and was not seen for so long holds up no other, and is not called. The reminder
wakes it every minute, and so it is seen."""


@dataclass(frozen=True, slots=True)
class Shares:
    """How many drains of one tenant may run at once: of its quick targets, and of its slow ones."""

    quick: int = 10
    slow: int = 3

    def of(self, *, slow: bool) -> int:
        return self.slow if slow else self.quick


@dataclass(frozen=True, slots=True)
class DrainLease:
    """`until_ms`: when the lease ends unless it is renewed; a drain that is over gave it back before."""

    tenant: str
    target_id: str
    holder: str
    since_ms: int
    until_ms: int
    slow: bool = False
    """Whether it is one of the tenant's slow drains, which take their turns among themselves."""

    def lives(self, now_ms: int) -> bool:
        return now_ms < self.until_ms


@dataclass(frozen=True, slots=True)
class WaitingTarget:
    """A target that waits for its tenant's turn."""

    tenant: str
    target_id: str
    since_ms: int
    slow: bool = False
    seen_ms: int = field(default=0, compare=False)
    """When it was last found to wait still."""

    def waits(self, now_ms: int) -> bool:
        """Its place is as old as its wait; whether it counts depends on when it was last seen."""
        return now_ms - max(self.since_ms, self.seen_ms) < FORGOTTEN_MS


def has_turn(
    mine: DrainLease, drains: Iterable[DrainLease], waiting: Sequence[WaitingTarget], shares: Shares, now_ms: int
) -> bool:
    """Whether a drain that has just taken its lease may go on: the others, and those that have waited for longer, leave
    room for it. Two that begin at once may both give way, but never both go on: each has its lease before it looks."""
    running = {one.target_id for one in _running(drains, now_ms, slow=mine.slow)}
    came_ms = min([one.since_ms for one in waiting if one.target_id == mine.target_id], default=mine.since_ms)
    older = {one.target_id for one in _in_line(waiting, now_ms, slow=mine.slow) if one.since_ms < came_ms}
    return len((running | older) - {mine.target_id}) < shares.of(slow=mine.slow)


def called(
    drains: Iterable[DrainLease], waiting: Iterable[WaitingTarget], shares: Shares, now_ms: int, *, slow: bool
) -> list[WaitingTarget]:
    """Whose turn it is now: those that have waited longest, as many as there is room for."""
    running = _running(drains, now_ms, slow=slow)
    room = shares.of(slow=slow) - len(running)
    busy = {one.target_id for one in running}
    line = [one for one in _in_line(waiting, now_ms, slow=slow) if one.target_id not in busy]
    return line[: max(room, 0)]


def _running(drains: Iterable[DrainLease], now_ms: int, *, slow: bool) -> list[DrainLease]:
    return [one for one in drains if one.slow == slow and one.lives(now_ms)]


def _in_line(waiting: Iterable[WaitingTarget], now_ms: int, *, slow: bool) -> list[WaitingTarget]:
    mine = [one for one in waiting if one.slow == slow and one.waits(now_ms)]
    return sorted(mine, key=lambda one: (one.since_ms, one.target_id))
