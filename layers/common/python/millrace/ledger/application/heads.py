"""Heads: how a process finds, and remembers, the newest page end of a ledger."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from millrace.ledger.domain.names import Ledger, bucket_last, bucket_of
from millrace.ledger.ports import Log

FRESH_MS = 1_000
"""A head this young is tried without reading forward first."""
USABLE_MS = 30_000
"""An older one is looked up again instead of read forward from."""
REMEMBERED = 4_096


@dataclass(slots=True)
class Heads:
    """Page ends this process has met, newest contact last. Losing them costs reads, never correctness."""

    clock: Callable[[], int]
    _ends: OrderedDict[str, tuple[int, int]] = field(default_factory=OrderedDict)

    def recall(self, ledger: Ledger) -> tuple[int, int] | None:
        """The remembered page end and its age in ms."""
        known = self._ends.get(ledger.name)
        if known is None:
            return None
        end, met = known
        return end, self.clock() - met

    def remember(self, ledger: Ledger, end: int) -> None:
        """`end` must be a page end: never an event's position, never a number from a client."""
        known = self._ends.get(ledger.name)
        if known is None or end >= known[0]:
            self._ends[ledger.name] = (end, self.clock())
            self._ends.move_to_end(ledger.name)
            while len(self._ends) > REMEMBERED:
                self._ends.popitem(last=False)


def newest(log: Log, heads: Heads, ledger: Ledger, hint: int) -> int:
    """The head as it is now, looked for from the best page end this process knows, and remembered."""
    known = heads.recall(ledger)
    head = find_head(log, ledger, max(hint, known[0] if known else 0))
    heads.remember(ledger, head)
    return head


def find_head(log: Log, ledger: Ledger, hint: int) -> int:
    """The newest page end, looking upward from the page end `hint`: by doubling, then halving, over buckets.

    Every non-empty bucket's predecessors are full, so the head lies in the last bucket that holds a page.
    """
    low = bucket_of(hint + 1)
    end = _last_end(log, ledger, low)
    if end is None:
        return hint
    if end < bucket_last(low):
        return end
    high, step = low + 1, 1
    while (found := _last_end(log, ledger, high)) is not None:
        low, end = high, found
        step *= 2
        high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        found = _last_end(log, ledger, middle)
        if found is None:
            high = middle
        else:
            low, end = middle, found
    return end


def _last_end(log: Log, ledger: Ledger, bucket: int) -> int | None:
    page = log.holding(ledger, bucket_last(bucket))
    return None if page is None else page.end
