"""Read the log by position, in at most two round trips."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import BUCKET, Ledger, bucket_end
from millrace.ledger.domain.page import Page, contiguous
from millrace.ledger.ports import Log, Run, Together

READ_AT_ONCE = 1_000
FEW = BUCKET // 2
"""Up to so many events are read and no more. Who wants more goes on, mostly, and reads buckets best whole."""
MAX_POSITION = 2**63 - 1
PATIENCE = 5
"""Reads in a row that may find nothing where the head says that something is."""


@dataclass(frozen=True, slots=True)
class ReadLog:
    log: Log
    together: Together

    def __call__(
        self, ledger: Ledger, after: int, through: int, want: int, *, trips: int = 2, at_page_end: bool = False
    ) -> list[Page]:
        """Pages without a hole from the one that holds `after` + 1 on, with about `want` events, none past `through`.

        It may give fewer (a large or a very young range): the caller goes on from the last page it got. A caller that
        knows `after` to be a page's end spares the look at that page.
        """
        if after >= through:
            return []
        last = min(through, after + want)
        read = partial(self.log.read, limit=want, through=last if want <= FEW else None)
        runs = self.together(self._calls(ledger, after, last, read, at_page_end=at_page_end))
        pages: list[Page] = []
        for run in runs:
            pages.extend(run.pages)
            if run.more:
                if trips > 1 and pages and pages[-1].end < last:
                    pages.extend(read(ledger, pages[-1].end).pages)
                break
        if not pages or pages[0].first > after + 1:
            return []
        return [page for page in contiguous(pages, pages[0].first - 1) if page.first <= through]

    def batches(self, ledger: Ledger, after: int, head: int, want: int) -> Iterator[list[Page]]:
        """All pages from the one that holds `after` + 1 up to `head`, about `want` events at a time."""
        at, stalled = after, 0
        while at < head:
            pages = self(ledger, at, head, want)
            stalled = 0 if pages else stalled + 1
            if stalled > PATIENCE:
                raise Unavailable("The ledger cannot be read up to its head now.")
            if pages:
                yield pages
                at = pages[-1].end

    def _calls(
        self, ledger: Ledger, after: int, through: int, read: Callable[[Ledger, int], Run], *, at_page_end: bool
    ) -> list[Callable[[], Run]]:
        """One read per bucket, and the page that `after` may lie inside of."""
        calls: list[Callable[[], Run]] = []
        aligned = at_page_end or after == 0 or after == bucket_end(after)
        if not aligned:
            calls.append(partial(self._holding, ledger, after))
        start = after if aligned else after + 1
        while start < through or start == after:
            calls.append(partial(read, ledger, start))
            start = bucket_end(start + 1)
        return calls

    def _holding(self, ledger: Ledger, after: int) -> Run:
        page = self.log.holding(ledger, after + 1)
        return Run([page] if page is not None and page.end > after else [])


def retained_from(log: Log, together: Together, ledger: Ledger, floor: int, head: int = MAX_POSITION) -> int:
    """The first position from the floor on whose body is there. Pruning empties pages before it raises the floor.

    Where a page cannot be read yet, the first position of that page: nobody knows more. Without a head it reads as far
    as it can.
    """
    at, want = floor - 1, 1
    while at < head:
        pages = ReadLog(log, together)(ledger, at, head, want)
        for page in pages:
            for event in page.events():
                if event.position > at and event.record.body is not None:
                    return event.position
                at = max(at, event.position)
        if not pages:
            break
        want = READ_AT_ONCE
    return at + 1
