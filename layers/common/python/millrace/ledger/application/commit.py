"""Commit: put a caller's events into a ledger, each exactly once.

A writer may put a page at P only if it has looked at every page after its ids' `seen` up to P-1 and found none
of its ids there. Pages chain without overlap, so two writers that want to commit one id meet in the log and the
second finds it. docs/adr/0001-commit-protocol.md has the argument; tests/simulation has the proof. A writer that keeps
losing waits in line for a leader (docs/adr/0012-busy-ledger.md), who follows the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millrace.ledger.application.heads import FRESH_MS, USABLE_MS, Heads, find_head
from millrace.ledger.application.search import Placed, Search, drop_after, read_on
from millrace.ledger.application.wait_in_line import WaitInLine
from millrace.ledger.domain.errors import BadRequest, Contention, Throttled
from millrace.ledger.domain.metrics import Metric, Tell, quiet
from millrace.ledger.domain.names import Ledger, bucket_end
from millrace.ledger.domain.page import MAX_PAGE_BYTES, Draft, Origin, Page, Record
from millrace.ledger.ports import Claims, Log, Run, State, Together

CLAIM_TRIES = 6
FAST_TRIES = 1
"""Lost puts after which a writer waits in line."""
APPEND_TRIES = 40
"""Lost puts after which a writer gives up where there is no line."""
BIG_WINNER_BYTES = 4_096
LONG_SEARCH_PAGES = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where an event is. A conflict has no position: its id belongs to other content or to another ledger."""

    position: int | None
    time_ms: int = 0
    fresh: bool = False
    body: bytes | None = None
    """Of an event that was there before: what is stored, unless it was pruned."""

    @property
    def conflict(self) -> bool:
        return self.position is None


@dataclass(frozen=True, slots=True)
class Commit:
    claims: Claims
    log: Log
    state: State
    heads: Heads
    together: Together
    clock: Callable[[], int]
    nonce: Callable[[], bytes]
    pause: Callable[[int], None]
    """Wait a little before try number n; jitter and scale belong to whoever wires it."""
    tell: Tell = quiet
    line: WaitInLine | None = None

    def __call__(
        self, ledger: Ledger, drafts: Sequence[Draft], origin: Origin, *, stop_at_conflict: bool = False
    ) -> list[Outcome]:
        """One outcome per draft, in order. Fresh events get ascending positions in the order given.

        With `stop_at_conflict` nothing after the first conflict is committed; its outcome has no position either.
        """
        for draft in drafts:
            if draft.weight > MAX_PAGE_BYTES:
                raise BadRequest("An event is too large to store.", id=draft.id, max_bytes=MAX_PAGE_BYTES)
        todo: dict[str, Draft] = {}
        for draft in drafts:
            todo.setdefault(draft.id, draft)
        if not todo:
            return []
        head, ahead = self._start(ledger)
        created, run = self._claim(ledger, list(todo), head, read_forward=ahead)
        seen = dict.fromkeys(todo, head)
        foreign = self._adopt_claims(ledger, [id_ for id_ in todo if id_ not in created], seen)
        wanted = {id_: draft.digest for id_, draft in todo.items()} if stop_at_conflict else {}
        for id_ in foreign:
            todo.pop(id_, None)
            drop_after(id_, wanted, todo)
        if todo:
            search = Search(todo, seen, wanted, at=min(seen[id_] for id_ in todo), nonce=self.nonce())
            if run is not None:
                search.examine_all(run.pages)
            self._resolve(ledger, search, created)
            self._append(ledger, search, origin)
            placed = search.placed
        else:
            placed = {}
        return [_outcome(draft, placed.get(draft.id)) for draft in drafts]

    def _start(self, ledger: Ledger) -> tuple[int, bool]:
        """The page end to start from, and whether to read forward from it while claiming."""
        known = self.heads.recall(ledger)
        if known is not None and known[1] <= USABLE_MS:
            return known[0], known[1] > FRESH_MS or self.heads.is_shared(ledger)
        hint = self.state.marks(ledger).hint if known is None else known[0]
        head = find_head(self.log, ledger, hint)
        self.heads.remember(ledger, head)
        return head, False

    def _claim(self, ledger: Ledger, ids: list[str], seen: int, *, read_forward: bool) -> tuple[set[str], Run | None]:
        """Claim every id. Returns those created now, and the pages read meanwhile."""
        run: Run | None = None
        pending, created = ids, set[str]()
        for attempt in range(CLAIM_TRIES):
            if attempt:
                self.pause(attempt)
            if read_forward and run is None:
                answers = self.together(
                    [lambda: self.claims.create(ledger, ids, seen), lambda: self.log.read(ledger, seen)]
                )
                claimed, run = answers[0], answers[1]
            else:
                claimed = self.claims.create(ledger, pending, seen)
            created |= claimed.created
            pending = [id_ for id_ in pending if id_ in claimed.failed]
            if not pending:
                return created, run
            self.tell(ledger, {Metric.CLAIMS_RETRIED: len(pending)})
        raise Throttled("Storage is throttled; nothing of this request was committed. Send the same ids again later.")

    def _adopt_claims(self, ledger: Ledger, existed: list[str], seen: dict[str, int]) -> list[str]:
        """Take over `seen` of ids claimed before; returns the ids that belong to another ledger.

        Never above the page end that is known here: in a restored log a claim may know one that is lost.
        """
        if not existed:
            return []
        foreign = []
        claims = self.claims.get(ledger, existed)
        for id_ in existed:
            if claims[id_].ledger != ledger.name:
                foreign.append(id_)
            seen[id_] = min(seen[id_], claims[id_].seen)
        return foreign

    def _resolve(self, ledger: Ledger, search: Search, created: set[str]) -> None:
        """Look for the ids that were claimed before: one page first, where a retry finds it, then up to the head."""
        limit: int | None = 1
        at_head = False
        while search.todo.keys() - created and not at_head:
            at_head = read_on(self.log, ledger, search, limit)
            limit = None
            if search.examined >= LONG_SEARCH_PAGES:
                self._move_seen(ledger, search, created)

    def _move_seen(self, ledger: Ledger, search: Search, created: set[str]) -> None:
        missing = [id_ for id_ in search.todo if id_ not in created and search.seen[id_] < search.at]
        if missing:
            self.claims.advance(ledger, missing, search.at)
        search.examined = 0

    def _append(self, ledger: Ledger, search: Search, origin: Origin) -> None:
        losses = 0
        while search.todo:
            if self.line is not None and (losses >= FAST_TRIES or self.heads.is_busy(ledger)):
                self.line(ledger, search, origin)
                break
            page = self._next_page(search, origin)
            if page.first == 1:
                self.state.register(ledger)
            winner = self.log.append(ledger, page)
            if winner is None or winner.nonce == page.nonce:
                search.examine(page)
                losses = 0
                continue
            losses += 1
            self.heads.note_shared(ledger)
            self.tell(ledger, {Metric.PUTS_LOST: 1})
            if losses >= APPEND_TRIES:
                self.tell(ledger, {Metric.COMMITS_GIVEN_UP: 1})
                raise Contention("Too many writers on this ledger; send the same ids again.")
            search.examine(winner)
            if losses >= 2 or _weight(winner) > BIG_WINNER_BYTES:
                self._catch_up(ledger, search, losses)
        self.heads.remember(ledger, search.at)

    def _catch_up(self, ledger: Ledger, search: Search, losses: int) -> None:
        """Read up to the head. Whoever waits does it before: afterwards the head would be old again."""
        if self.line is None:
            self.pause(losses)
        while search.todo and not read_on(self.log, ledger, search):
            pass

    def _next_page(self, search: Search, origin: Origin) -> Page:
        first = search.at + 1
        room, weight, records = bucket_end(first) - search.at, 0, list[Record]()
        for draft in search.todo.values():
            weight += draft.weight
            if len(records) == room or (records and weight > MAX_PAGE_BYTES):
                break
            records.append(Record(draft.id, draft.digest, draft.body, draft.partitions))
        return Page(first, tuple(records), self.clock(), origin, search.nonce)


def _weight(page: Page) -> int:
    return sum(len(record.body or b"") for record in page.records)


def _outcome(draft: Draft, placed: Placed | None) -> Outcome:
    if placed is None or placed.digest != draft.digest:
        return Outcome(None)
    return Outcome(placed.position, placed.time_ms, placed.fresh, None if placed.fresh else placed.body)
