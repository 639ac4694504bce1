"""Prune: take the bodies out of old events. Keys, ids, digests and partitions stay, so nothing is committed again."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from millrace.ledger.domain.names import Ledger, bucket_last, bucket_of
from millrace.ledger.domain.page import Event, contiguous
from millrace.ledger.ports import Log, State

PATIENCE = 20
"""Pages that another pruner may change under this one before it leaves the rest to the next call."""


def _always(_event: Event) -> bool:
    return True


def _no_hurry() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many bodies went, and whether none that may go is left up to the position that was asked for."""

    removed: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Prune:
    log: Log
    state: State
    consumers: Collection[str]
    may_go_on: Callable[[], bool] = _no_hurry
    """False when the caller's time is nearly up; calling again goes on where this stopped."""

    def __call__(self, ledger: Ledger, through: int, may_go: Callable[[Event], bool] = _always) -> Pruned:
        """Empty what `may_go` allows up to `through`, never above a consumer's cursor.

        The floor rises over the leading events that are all gone. A page that another pruner changed meanwhile is
        read again.
        """
        marks, asked = self.state.marks(ledger), through
        through = min([through, *(marks.cursors.get(consumer, 0) for consumer in self.consumers)])
        cursor = floor = bucket_last(bucket_of(marks.floor) - 1)
        removed, refused, solid = 0, 0, True
        while cursor < through and refused < PATIENCE and self.may_go_on():
            pages = list(contiguous(self.log.read(ledger, cursor).pages, cursor))
            if not pages:
                break
            for page in pages:
                gone = [e.position for e in page.events() if e.position <= through and e.record.body and may_go(e)]
                kept = page.emptied(gone) if gone else page
                if gone and not self.log.replace(ledger, kept):
                    refused += 1
                    break
                removed += len(gone)
                for event in kept.events():
                    solid = solid and event.record.body is None
                    floor = event.position if solid else floor
                cursor = page.end
        self.state.raise_floor(ledger, floor + 1)
        return Pruned(removed, min(cursor, through) >= asked)
