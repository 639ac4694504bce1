"""Two fan-outs on one ledger: whoever loses the race for the cursor leaves nothing behind."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from millrace.ledger.adapters.memory import MemoryLog, MemoryState, in_turn
from millrace.ledger.domain.consumers import FAN_OUT_CONSUMER
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Origin, Page, Record
from millrace.live.adapters.memory import MemoryConnections, MemorySubscriptions, MemoryWire
from millrace.live.application.broadcast import Broadcast
from millrace.live.ports import Subscription

LEDGER = Ledger.of("sync", "default", "demo")
PAGES, A_PAGE = 3, 40


@dataclass(slots=True)
class Raced(MemoryState):
    """Another fan-out moves the cursor just before this one does, once."""

    to: int = 0

    def move_cursor(self, ledger: Ledger, consumer: str, expected: int, to: int, noted: int = 0) -> bool:
        if self.to:
            other, self.to = self.to, 0
            assert MemoryState.move_cursor(self, ledger, consumer, expected, other, noted)
        return MemoryState.move_cursor(self, ledger, consumer, expected, to, noted)


@pytest.mark.parametrize("page", range(1, PAGES + 1))
def test_who_finds_that_another_moved_the_cursor_goes_on_from_where_it_is(page: int) -> None:
    """The other may have read the log before its last pages came, and does not look again."""
    log, state, subscriptions, wire = MemoryLog(), Raced(to=page * A_PAGE), MemorySubscriptions(), MemoryWire()
    for number in range(PAGES):
        first = number * A_PAGE + 1
        records = tuple(Record(f"e{first + n}", b"d", b"{}", ("a",)) for n in range(A_PAGE))
        log.append(LEDGER, Page(first, records, 0, Origin("c"), b"n"))
    subscriptions.add(Subscription("c1", "sync", LEDGER.name, None, "snake", "demo", 10**15, 0))
    broadcast = Broadcast(
        log=log,
        state=state,
        subscriptions=subscriptions,
        connections=MemoryConnections(),
        wire=wire,
        together=in_turn,
        clock=lambda: 0,
        render=lambda _to, event: str(event.position),
        farewell=lambda _to: "",
        may_go_on=lambda: True,
    )
    assert broadcast(LEDGER)
    assert state.marks(LEDGER).cursors == {FAN_OUT_CONSUMER: PAGES * A_PAGE}
    by_the_other = set(range(1, page * A_PAGE + 1))
    assert {int(text) for text in wire.sent["c1"]} | by_the_other == set(range(1, PAGES * A_PAGE + 1))
