"""A stint: what a leader knows of a busy ledger, and the next page it would put there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from millrace.ledger.application.search import Search
from millrace.ledger.domain.names import Ledger, bucket_end
from millrace.ledger.domain.page import MAX_PAGE_BYTES, Origin, Page, Part, Record
from millrace.ledger.domain.waiting import Receipt, Waiting

ROUNDS = 6
"""Pages that a leader puts before it hands over, once its own request is done."""


@dataclass(slots=True)
class Chain:
    """Pages without a hole: those after `low`, up to `at`."""

    low: int
    at: int
    pages: list[Page] = field(default_factory=list)

    def extend(self, pages: Iterable[Page]) -> bool:
        """Add what follows `at`; False when there was nothing new."""
        before = self.at
        for page in pages:
            if page.first == self.at + 1:
                self.pages.append(page)
                self.at = page.end
        return self.at > before

    def prepend(self, older: Chain) -> None:
        self.pages[:0] = [page for page in older.pages if page.first <= self.low]
        self.low = older.low


@dataclass(slots=True)
class Request:
    """A request that waits, and the leader's search on its behalf."""

    row: Waiting
    search: Search

    @classmethod
    def of(cls, row: Waiting) -> Request:
        todo = {draft.id: draft for draft in row.drafts}
        wanted = {draft.id: draft.digest for draft in row.drafts} if row.stops else {}
        return cls(row, Search(todo, dict.fromkeys(todo, row.mark), wanted, row.mark, row.nonce))


@dataclass(slots=True)
class Stint:
    """One writer's time as the leader."""

    ledger: Ledger
    own: Search
    origin: Origin
    chain: Chain
    receipts: list[Receipt]
    requests: dict[bytes, Request] = field(default_factory=dict)
    own_row: bool = False
    """The own request lies in the waiting room, too."""
    announced: dict[bytes, int] = field(default_factory=dict)
    """How many drafts of a request the receipts of this stint tell of."""
    cleared: set[bytes] = field(default_factory=set)
    served: int = 0
    others: bool = False
    """The last round did something for others."""
    rounds: int = 0
    pace_ms: int = 0
    """How long storage took for the last look at what waits."""

    def open(self) -> list[Request]:
        """Those that still wait for something, the longest waiting first."""
        waiting = [request for request in self.requests.values() if request.search.todo]
        return sorted(waiting, key=lambda request: request.row.arrived_ms)

    @property
    def goes_on(self) -> bool:
        """Whoever served others in a round finds others in the next one, as a rule."""
        return bool(self.own.todo) or (self.rounds < ROUNDS and (self.others or bool(self.open())))

    def note(self, rows: Iterable[Waiting], now_ms: int) -> list[bytes]:
        """Take in who waits. Returns those whose writers have given up."""
        ended: list[bytes] = []
        for row in rows:
            if row.nonce == self.own.nonce:
                self.own_row = True
            elif row.nonce not in self.requests and row.nonce not in self.cleared:
                if now_ms < row.ends_ms:
                    self.requests[row.nonce] = Request.of(row)
                else:
                    ended.append(row.nonce)
        self.cleared.update(ended)
        return ended

    def examine(self) -> None:
        for search in (self.own, *(request.search for request in self.open())):
            search.examine_all(self.chain.pages)

    def next_page(self, now_ms: int, nonce: bytes) -> Page | None:
        """What waits and has been looked for up to the end of the chain, in order of arrival, as one page."""
        draft_page = _DraftPage(room=bucket_end(self.chain.at + 1) - self.chain.at)
        for search, origin in self._searches(now_ms):
            if search.at == self.chain.at and not draft_page.full:
                draft_page.add(search, origin)
        if not draft_page.records:
            return None
        parts = tuple(draft_page.parts)
        return Page(self.chain.at + 1, tuple(draft_page.records), now_ms, parts[0].origin, nonce, parts=parts)

    def _searches(self, now_ms: int) -> Iterator[tuple[Search, Origin]]:
        yield self.own, self.origin
        for request in self.open():
            if now_ms < request.row.ends_ms:
                yield request.search, request.row.origin


@dataclass(slots=True)
class _DraftPage:
    """A page being filled. Equal ids share a place; of two contents the first goes in."""

    room: int
    weight: int = 0
    full: bool = False
    taken: dict[str, bytes] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    def add(self, search: Search, origin: Origin) -> None:
        """As much of a request as fits, in its order; nothing after a conflict, if that is to stop it."""
        before = len(self.records)
        self.weight += Part(0, origin, search.nonce).weight
        for draft in search.todo.values():
            digest = self.taken.get(draft.id)
            if digest is None:
                self.weight += draft.weight
                self.full = len(self.records) == self.room or (bool(self.records) and self.weight > MAX_PAGE_BYTES)
                if self.full:
                    break
                self.taken[draft.id] = draft.digest
                self.records.append(Record(draft.id, draft.digest, draft.body, draft.partitions))
            elif search.wanted and digest != draft.digest:
                break
        if len(self.records) > before:
            self.parts.append(Part(len(self.records) - before, origin, search.nonce))
