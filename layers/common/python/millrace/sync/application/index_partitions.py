"""Index partitions: note, per partition, where a ledger's events are, so that a sync need not read the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millrace.ledger.domain.consumers import INDEX_CONSUMER
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Page, contiguous
from millrace.ledger.ports import Log, State
from millrace.sync.ports import Hit, IndexRow, PartitionIndex

MAX_HITS = 4_096
"""Of one row: with 6 bytes a hit it stays far below an item's limit."""


@dataclass(frozen=True, slots=True)
class IndexPartitions:
    log: Log
    state: State
    index: PartitionIndex
    may_go_on: Callable[[], bool]
    """False when the caller's time is nearly up; what is left is found by the next ring or sweep."""

    def __call__(self, ledger: Ledger) -> bool:
        """Index up to the head. True when it got there, False when time ran out or another indexer took over."""
        cursor = self.state.marks(ledger).cursors.get(INDEX_CONSUMER, 0)
        while True:
            run = self.log.read(ledger, cursor)
            pages = span(list(contiguous(run.pages, cursor)))
            if not pages:
                return True
            end = pages[-1].end
            self.index.write(ledger, rows_of(pages, cursor + 1, end))
            if not self.state.move_cursor(ledger, INDEX_CONSUMER, cursor, end):
                return False
            cursor = end
            if not self.may_go_on():
                return False


def span(pages: list[Page]) -> list[Page]:
    """The first of these pages: as many as make rows that fit."""
    taken: list[Page] = []
    hits = 0
    for page in pages:
        hits += len(page.records)
        if taken and hits > MAX_HITS:
            break
        taken.append(page)
    return taken


def rows_of(pages: Sequence[Page], start: int, end: int) -> list[IndexRow]:
    """The rows that tell of these pages, which cover the positions `start`..`end`."""
    hits: dict[str, list[Hit]] = {}
    for page in pages:
        for event in page.events():
            for partition in event.record.partitions:
                hits.setdefault(partition, []).append(Hit(event.position, page.first))
    return [IndexRow(partition, start, end, found) for partition, found in sorted(hits.items())]
