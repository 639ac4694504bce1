"""The state of one event towards one target, and how an attempt's outcome changes it (D4)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from millrace.delivery.domain.retry import Schedule


class Status(StrEnum):
    SUCCESS = "success"
    DUPLICATE = "duplicate"
    PENDING = "pending"
    REJECTED = "rejected"
    TRANSIENT = "transient"
    TERMINAL_FAILED = "terminal_failed"


DELIVERED = frozenset({Status.SUCCESS, Status.DUPLICATE})
OPEN = frozenset({Status.PENDING, Status.REJECTED, Status.TRANSIENT})
"""Selected again by themselves, when their time has come."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attempt came to. `error` is for people and never holds a payload."""

    status: Status
    error: str = ""
    retry_after_ms: int | None = None


MOST_HISTORY = 10
MOST_EARLIER_CHARACTERS = 60
"""Of the error of an attempt that is not the last: the history must not make a row dearer to write."""
ANSWERED = re.compile(r"answered ([1-5][0-9]{2})(?![0-9])")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a delivery, as far as it is remembered."""

    at_ms: int
    status: Status
    error: str = ""

    @property
    def answer(self) -> int | None:
        """The HTTP status of a request that was refused as a whole."""
        found = ANSWERED.search(self.error)
        return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class Delivery:
    """`next_ms`: not to be tried again before; None when nothing tries it again by itself."""

    status: Status
    attempts: int
    first_ms: int
    last_ms: int
    next_ms: int | None = None
    error: str = ""
    earlier: tuple[Attempt, ...] = ()
    """Attempts before the last one, as far as the journal keeps them."""
    delivered_ms: int | None = None
    """When it was delivered before it was replayed; None: it was not."""

    @property
    def delivered(self) -> bool:
        return self.status in DELIVERED

    @property
    def history(self) -> tuple[Attempt, ...]:
        """The last attempts, the oldest first. One that was retried by hand has none since."""
        last = (Attempt(self.last_ms, self.status, self.error),) if self.attempts else ()
        return (*self.earlier, *last)

    def remembered(self) -> tuple[Attempt, ...]:
        """What the next attempt keeps of those before it."""
        kept = self.history[1 - MOST_HISTORY :]
        return tuple(replace(one, error=one.error[:MOST_EARLIER_CHARACTERS]) for one in kept)


def settle(before: Delivery | None, outcome: Outcome, now_ms: int, schedule: Schedule, jitter: float) -> Delivery:
    """The delivery after an attempt. What is delivered stays so, whatever a later answer says."""
    if before is not None and before.delivered:
        return before
    attempts = 1 if before is None else before.attempts + 1
    first_ms = now_ms if before is None else before.first_ms
    earlier = () if before is None else before.remembered()
    delivered_ms = None if before is None else before.delivered_ms
    after = Delivery(outcome.status, attempts, first_ms, now_ms, None, outcome.error, earlier, delivered_ms)
    if outcome.status not in OPEN:
        return after
    most = schedule.pace(outcome.status).most
    if attempts >= most:
        error = f"given up after {attempts} attempts: {outcome.error or outcome.status}"
        return replace(after, status=Status.TERMINAL_FAILED, error=error)
    wait = max(schedule.wait_ms(outcome.status, attempts, jitter), outcome.retry_after_ms or 0)
    return replace(after, next_ms=now_ms + wait)


def retried(before: Delivery, now_ms: int) -> Delivery:
    """By hand: due at once, counted anew. `pending`, so that an old event does not hold back its ledger."""
    return replace(before, status=Status.PENDING, attempts=0, next_ms=now_ms, earlier=before.remembered())


def replayed(before: Delivery | None, now_ms: int) -> Delivery:
    """By hand: due at once, even if it is delivered, which stays known. None: the target passed it over."""
    if before is None:
        return Delivery(Status.PENDING, 0, now_ms, now_ms, now_ms)
    delivered_ms = before.last_ms if before.delivered else before.delivered_ms
    return replace(retried(before, now_ms), delivered_ms=delivered_ms)
