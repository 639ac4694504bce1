"""Rebuild the partition index of a ledger: write its rows again from the log, whatever the indexer's cursor says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millrace.ledger.application.raise_cursor import raise_cursor
from millrace.ledger.domain.consumers import INDEX_CONSUMER
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import contiguous
from millrace.ledger.ports import Log, State
from millrace.sync.application.index_partitions import rows_of, span
from millrace.sync.ports import PartitionIndex


@dataclass(frozen=True, slots=True)
class RebuildIndex:
    log: Log
    state: State
    index: PartitionIndex

    def __call__(self, ledger: Ledger, start: int, reached: Callable[[int], None]) -> int:
        """How many rows were written. `start` is what `reached` was told by a run that was interrupted, else 0.

        The cursor rises only over positions whose rows are written, so no reader misses an event meanwhile.
        """
        cursor, written = start, 0
        while pages := span(list(contiguous(self.log.read(ledger, cursor).pages, cursor))):
            rows = rows_of(pages, cursor + 1, pages[-1].end)
            self.index.write(ledger, rows)
            written += len(rows)
            cursor = pages[-1].end
            raise_cursor(self.state, ledger, INDEX_CONSUMER, cursor)
            reached(cursor)
        return written
