"""A search: what one request still has to place in a ledger, and how far it has been looked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from millrace.ledger.domain.names import Ledger, bucket_end
from millrace.ledger.domain.page import Draft, Event, Page
from millrace.ledger.ports import Log


@dataclass(frozen=True, slots=True)
class Placed:
    position: int
    digest: bytes
    time_ms: int
    fresh: bool
    body: bytes | None


@dataclass(slots=True)
class Search:
    """For every id in `todo`, each page in (`seen[id]`, `at`] has been examined."""

    todo: dict[str, Draft]
    seen: dict[str, int]
    wanted: dict[str, bytes]
    """The digests in request order, if a conflict is to stop what comes after it; else empty."""
    at: int
    nonce: bytes
    """Of the request: an event that carries it is this request's own."""
    placed: dict[str, Placed] = field(default_factory=dict)
    examined: int = 0

    def examine(self, page: Page) -> None:
        for event in page.events():
            if self.todo.pop(event.record.id, None) is not None:
                self._place(event)
        self.examined += 1
        self._pass(page.end)

    def examine_all(self, pages: Iterable[Page]) -> bool:
        """Examine what follows `at` without a hole; False when there was nothing new."""
        moved = False
        for page in pages:
            if page.first <= self.at:
                continue
            if page.first != self.at + 1:
                break
            self.examine(page)
            moved = True
        return moved

    def _place(self, event: Event) -> None:
        record = event.record
        fresh = event.nonce == self.nonce
        self.placed[record.id] = Placed(event.position, record.digest, event.time_ms, fresh, record.body)
        if self.wanted and record.digest != self.wanted[record.id]:
            drop_after(record.id, self.wanted, self.todo)

    def _pass(self, end: int) -> None:
        self.at = end
        if self.todo:
            self.at = max(self.at, min(self.seen[id_] for id_ in self.todo))


def drop_after(id_: str, wanted: dict[str, bytes], todo: dict[str, Draft]) -> None:
    order = list(wanted)
    for later in order[order.index(id_) + 1 :] if wanted else ():
        todo.pop(later, None)


def read_on(log: Log, ledger: Ledger, search: Search, limit: int | None = None) -> bool:
    """Examine the next pages; True when they reached the head."""
    run = log.read(ledger, search.at, limit)
    moved = search.examine_all(run.pages)
    return not moved or (not run.more and search.at < bucket_end(search.at))
