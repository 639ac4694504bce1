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
SHARED_MS = 2_000
"""For so long after a lost put others are taken to write too: the log is read forward while claiming."""
BUSY_MS = 1_000
"""For so long after a wait in line the ledger is taken for busy: a writer waits in line at once."""
REMEMBERED = 4_096


@dataclass(slots=True)
class Heads:
    """Page ends this process has met, newest contact last. Losing them costs reads, never correctness."""

    clock: Callable[[], int]
    _ends: OrderedDict[str, tuple[int, int]] = field(default_factory=OrderedDict)
    _shared: dict[str, int] = field(default_factory=dict)
    _busy: dict[str, int] = field(default_factory=dict)

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

    def note_shared(self, ledger: Ledger) -> None:
        """Somebody else writes to this ledger too."""
        self._note_now(self._shared, ledger)

    def is_shared(self, ledger: Ledger) -> bool:
        return self.clock() - self._shared.get(ledger.name, -SHARED_MS) < SHARED_MS

    def note_busy(self, ledger: Ledger) -> None:
        """Writers of this ledger wait in line."""
        self._note_now(self._busy, ledger)

    def note_calm(self, ledger: Ledger) -> None:
        """Nobody else waited: the next writer need not wait either."""
        self._busy.pop(ledger.name, None)

    def is_busy(self, ledger: Ledger) -> bool:
        return self.clock() - self._busy.get(ledger.name, -BUSY_MS) < BUSY_MS

    def _note_now(self, noted: dict[str, int], ledger: Ledger) -> None:
        if len(noted) >= REMEMBERED:
            noted.clear()
        noted[ledger.name] = self.clock()


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
