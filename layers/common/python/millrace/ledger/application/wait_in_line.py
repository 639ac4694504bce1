"""Wait in line: a writer that lost leaves its request in the ledger's waiting room until a leader has committed it.

The lease decides who leads, for speed alone; whoever leads, and whether anybody does, changes no truth. A writer that
sees no progress looks into the log itself, and leads when nobody else does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from millrace.ledger.application.heads import Heads
from millrace.ledger.application.lead import Lead, lease_ms
from millrace.ledger.application.search import Placed, Search, read_on
from millrace.ledger.domain.errors import LedgerBusy, Unavailable
from millrace.ledger.domain.metrics import Metric, Tell, quiet
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Origin
from millrace.ledger.domain.waiting import Notice, Receipt, Waiting
from millrace.ledger.ports import Board, Log, WaitingRoom

PATIENCE_MS = 6_000
"""How long a writer waits."""
GRACE_MS = 500
"""How long after that its request may still be absorbed: no longer than clocks differ."""
LOOK_MS = 250
"""A writer that has heard nothing for so long looks into the log itself."""
MOST_BYTES = 64 * 1024
"""A larger request does not lie in the waiting room: its writer waits to lead."""
ROOM_FULL = 2_000
"""With so many requests left after a page, no further one is taken."""
NAP_MS, LONGEST_NAP_MS = 6, 250
SLOW_MS = 20
"""Storage that takes longer than this to answer has enough to do: those who wait ask it less often."""


@dataclass(slots=True)
class _Place:
    """One request's place in line."""

    search: Search
    origin: Origin
    since_ms: int
    looked_ms: int
    row: Waiting | None = None
    """What this writer leaves in the waiting room: receipts number its drafts, so it never changes."""
    lies: bool = False
    """It lies there, as far as we know."""
    pace_ms: int = 0
    """How long storage took for the last look at the board, and what it led to."""


@dataclass(frozen=True, slots=True)
class WaitInLine:
    room: WaitingRoom
    board: Board
    lead: Lead
    log: Log
    heads: Heads
    clock: Callable[[], int]
    nap: Callable[[int], None]
    """Wait about so many ms."""
    tell: Tell = quiet

    def __call__(self, ledger: Ledger, search: Search, origin: Origin) -> None:
        """Returns when everything in `search.todo` is placed. Raises `LedgerBusy` when that takes too long."""
        now = self.clock()
        place = _Place(search, origin, now, now)
        while search.todo:
            asked = self.clock()
            notice = self._ask(ledger, place)
            place.pace_ms = self.clock() - asked
            if notice is not None:
                self._lead(ledger, place, notice)
            elif search.todo:
                self.nap(_nap_ms(self.clock() - asked))
        self.tell(ledger, {Metric.REQUESTS_WAITED: 1, Metric.WAITED_MS: self.clock() - place.since_ms})

    def _ask(self, ledger: Ledger, place: _Place) -> Notice | None:
        """The board, if this writer leads now. Storage that fails costs a waiter one turn."""
        if self.clock() - place.since_ms > PATIENCE_MS:
            self._give_up(ledger, place)
            return None
        try:
            return self._take_turn(ledger, place, self.board.read(ledger))
        except LedgerBusy:
            raise
        except Unavailable:
            return None

    def _take_turn(self, ledger: Ledger, place: _Place, notice: Notice) -> Notice | None:
        self._learn(ledger, place, notice)
        if place.search.todo and self._may_lead(ledger, place, notice):
            return notice
        if place.search.todo:
            self._stay(ledger, place, notice)
        return None

    def _learn(self, ledger: Ledger, place: _Place, notice: Notice) -> None:
        if place.row is None:
            return
        for receipt in notice.receipts:
            if place.row.nonce in receipt.placed:
                _apply(place.search, place.row, receipt)
                place.looked_ms = self.clock()
                self.heads.remember(ledger, receipt.end)
        if any(place.row.nonce in receipt.look for receipt in notice.receipts):
            place.lies = False
            self._look(ledger, place)

    def _may_lead(self, ledger: Ledger, place: _Place, notice: Notice) -> bool:
        now = self.clock()
        if notice.leader == place.search.nonce and now < notice.until_ms:
            return True
        return notice.is_free(now) and self.board.take(ledger, place.search.nonce, now, now + lease_ms(place.pace_ms))

    def _lead(self, ledger: Ledger, place: _Place, notice: Notice) -> None:
        served = self.lead(ledger, place.search, place.origin, notice, place.since_ms + PATIENCE_MS)
        if served:
            self.heads.note_busy(ledger)
        else:
            self.heads.note_calm(ledger)

    def _stay(self, ledger: Ledger, place: _Place, notice: Notice) -> None:
        self.heads.note_busy(ledger)
        if place.row is None and notice.waiting >= ROOM_FULL:
            self._refuse(ledger)
        if not place.lies and sum(draft.weight for draft in place.search.todo.values()) <= MOST_BYTES:
            place.row = place.row or _request(place)
            self.room.leave(ledger, place.row)
            place.lies = True
        if self.clock() - place.looked_ms > max(LOOK_MS, 10 * place.pace_ms):
            self._look(ledger, place)

    def _look(self, ledger: Ledger, place: _Place) -> None:
        while place.search.todo and not read_on(self.log, ledger, place.search):
            pass
        place.looked_ms = self.clock()

    def _give_up(self, ledger: Ledger, place: _Place) -> None:
        """After a last look into the log: what waits may have been committed meanwhile."""
        if place.row is not None:
            with suppress(Unavailable):
                self.room.clear(ledger, [place.row.nonce])
        self._look(ledger, place)
        if place.search.todo:
            self._refuse(ledger)

    def _refuse(self, ledger: Ledger) -> None:
        self.tell(ledger, {Metric.COMMITS_GIVEN_UP: 1})
        raise LedgerBusy("Too many requests wait for this ledger; send the same ids again later.")


def _nap_ms(took_ms: int) -> int:
    return min(LONGEST_NAP_MS, max(NAP_MS, (2 if took_ms <= SLOW_MS else 4) * took_ms))


def _request(place: _Place) -> Waiting:
    search = place.search
    return Waiting(
        nonce=search.nonce,
        drafts=tuple(search.todo.values()),
        mark=search.at,
        origin=place.origin,
        stops=bool(search.wanted),
        arrived_ms=place.since_ms,
        ends_ms=place.since_ms + PATIENCE_MS + GRACE_MS,
    )


def _apply(search: Search, request: Waiting, receipt: Receipt) -> None:
    for placing in receipt.placed[request.nonce]:
        for offset, draft in enumerate(request.drafts[placing.start : placing.start + placing.count]):
            if search.todo.pop(draft.id, None) is not None:
                position = placing.position + offset
                search.placed[draft.id] = Placed(position, draft.digest, receipt.time_ms, fresh=True, body=None)
