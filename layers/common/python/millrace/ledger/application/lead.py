"""Lead: commit a ledger's waiting requests, many in one page, and leave receipts.

The rule of the commit protocol holds for each of them: a page is put at P only if every page after a request's mark, up
to P-1, has been examined for its ids. A leader that dies, stalls or is not the only one costs time, never truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from millrace.ledger.application.search import Search
from millrace.ledger.application.stint import Chain, Stint
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.metrics import Metric, Tell, quiet
from millrace.ledger.domain.names import Ledger, bucket_end
from millrace.ledger.domain.page import Origin, Page
from millrace.ledger.domain.receipts import latest
from millrace.ledger.domain.waiting import Notice, Receipt, receipt_of
from millrace.ledger.ports import Board, Log, Run, State, Together, WaitingRoom

LEASE_MS = 150
"""How long a leader that says nothing is waited for. It says something with every page."""
HAND_OVER_MS = 60
"""How long the one that is to lead next is waited for."""
LONGEST_MS = 900
"""Both are longer where storage is slow, but never longer than a lease may be (`LONGEST_LEASE_MS`)."""


def lease_ms(pace_ms: int, least_ms: int = LEASE_MS) -> int:
    """A lease outlives a round, and the nap of the one that is to lead next, however long a call takes."""
    return min(LONGEST_MS, max(least_ms, 8 * pace_ms))


@dataclass(frozen=True, slots=True)
class Lead:
    room: WaitingRoom
    board: Board
    log: Log
    state: State
    together: Together
    clock: Callable[[], int]
    nonce: Callable[[], bytes]
    tell: Tell = quiet

    def __call__(self, ledger: Ledger, own: Search, origin: Origin, notice: Notice, until_ms: int) -> int:
        """Returns how many others were served, when the own request is placed, or not placed by `until_ms`."""
        stint = Stint(ledger, own, origin, Chain(own.at, own.at), list(notice.receipts))
        try:
            while self._round(stint) and not (own.todo and self.clock() > until_ms):
                pass
        except Unavailable:
            self._hand_over(stint)
            if own.todo:
                raise
        else:
            self._hand_over(stint)
        return stint.served

    def _round(self, stint: Stint) -> bool:
        """Read what waits and what is new, put one page. False when there is nothing left to do."""
        stint.rounds += 1
        began_ms = self.clock()
        self._read(stint)
        stint.pace_ms = self.clock() - began_ms
        stint.examine()
        page = stint.next_page(self.clock(), self.nonce())
        if page is not None and not self._put(stint, page):
            return stint.goes_on
        self._tell_and_clear(stint, page)
        return stint.goes_on

    def _put(self, stint: Stint, page: Page) -> bool:
        """False when another writer was first; its page is examined in the next round."""
        if page.first == 1:
            self.state.register(stint.ledger)
        winner = self.log.append(stint.ledger, page)
        if winner is not None and winner.nonce != page.nonce:
            self.tell(stint.ledger, {Metric.PUTS_LOST: 1})
            stint.chain.extend([winner])
            return False
        stint.chain.extend([page])
        stint.examine()
        self.tell(stint.ledger, {Metric.PAGES_LED: 1, Metric.EVENTS_LED: len(page.records)})
        return True

    def _read(self, stint: Stint) -> None:
        rows, run = self.together(
            [lambda: self.room.look(stint.ledger), lambda: self.log.read(stint.ledger, stint.chain.at)]
        )
        self._read_forward(stint, run)
        self._clear(stint.ledger, stint.note(rows, self.clock()))
        lowest = min((request.search.at for request in stint.open()), default=stint.chain.low)
        if lowest < stint.chain.low:
            self._read_back(stint, lowest)

    def _read_forward(self, stint: Stint, run: Run) -> None:
        while stint.chain.extend(run.pages) and (run.more or stint.chain.at == bucket_end(stint.chain.at)):
            run = self.log.read(stint.ledger, stint.chain.at)

    def _read_back(self, stint: Stint, lowest: int) -> None:
        """Requests that have been looked for less far than this leader began: those pages are read too."""
        older = Chain(lowest, lowest)
        while older.at < stint.chain.low:
            run = self.log.read(stint.ledger, older.at, through=stint.chain.low)
            if not older.extend(run.pages):
                raise Unavailable("The log could not be read back.")
        stint.chain.prepend(older)

    def _tell_and_clear(self, stint: Stint, page: Page | None) -> None:
        """Only now that the page is confirmed. Losing either costs its readers time."""
        done = [nonce for nonce, request in stint.requests.items() if not request.search.todo]
        done = [nonce for nonce in done if nonce not in stint.cleared]
        stint.served += len(done)
        stint.others = bool(done)
        receipt = self._receipt(stint, page)
        unheard = [nonce for nonce in done if stint.announced.get(nonce, 0) < len(stint.requests[nonce].row.drafts)]
        if receipt.placed or unheard:
            stint.receipts = latest([*stint.receipts, replace(receipt, look=frozenset(unheard))])
        if stint.own_row and not stint.own.todo:
            done, stint.own_row = [*done, stint.own.nonce], False
        stint.cleared.update(done)
        if done or stint.open():
            self.together([lambda: self._clear(stint.ledger, done), lambda: self._post(stint, lease_ms(stint.pace_ms))])

    def _receipt(self, stint: Stint, page: Page | None) -> Receipt:
        if page is None:
            return Receipt(stint.chain.at, self.clock(), {})
        receipt = receipt_of(page, {nonce: request.row for nonce, request in stint.requests.items()})
        for nonce, placings in receipt.placed.items():
            stint.announced[nonce] = stint.announced.get(nonce, 0) + sum(placing.count for placing in placings)
        return receipt

    def _post(self, stint: Stint, for_ms: int, leader: bytes | None = None) -> None:
        notice = Notice(leader or stint.own.nonce, self.clock() + for_ms, stint.receipts, len(stint.open()))
        with suppress(Unavailable):
            self.board.post(stint.ledger, stint.own.nonce, notice)

    def _clear(self, ledger: Ledger, nonces: Sequence[bytes]) -> None:
        if nonces:
            with suppress(Unavailable):
                self.room.clear(ledger, nonces)

    def _hand_over(self, stint: Stint) -> None:
        """To the one that has waited longest, if anybody waits: else all of them would run for it."""
        if stint.others:
            with suppress(Unavailable):
                stint.note(self.room.look(stint.ledger), self.clock())
        heir = next((request.row.nonce for request in stint.open()), None)
        self._post(stint, lease_ms(stint.pace_ms, HAND_OVER_MS) if heir else 0, heir)
