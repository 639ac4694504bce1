"""Fan out: send new events of ledgers to their subscribers, and wake other readers. No ledger waits for another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from millrace.ledger.application.failures import Failures
from millrace.ledger.domain.names import INDEXED, Ledger
from millrace.ledger.ports import Doorbell
from millrace.live.domain.turns import SLICE_MS, in_turns
from millrace.live.ports import DeliveryWakes


@dataclass(frozen=True, slots=True)
class FanOut:
    index: Doorbell
    rest: Doorbell
    """Rung for a ledger when time ran out before its head was reached."""
    wake_targets: DeliveryWakes
    broadcast: Callable[[Ledger], bool]
    """Brings a ledger's new events to its subscriptions; True when the head was reached."""
    may_go_on: Callable[[], bool]
    clock: Callable[[], int]

    def __call__(self, ledgers: Sequence[Ledger], *, grown: bool) -> Failures:
        """`grown`: the log itself rang, so the indexer and the targets have to hear of it too. One failure holds
        nothing else back; the caller sees to it that these ledgers come again. Tenants take turns, and a batch of the
        log is worked on for a slice only: what is left is rung for, so that the next batch does not wait for it."""
        failures, began_ms = Failures(), self.clock()
        if grown:
            indexed = [ledger for ledger in ledgers if ledger.contract in INDEXED]
            failures.around("index", "", partial(self.index.ring, indexed), None)
            failures.around("wake", "", partial(self.wake_targets, [ledger.name for ledger in ledgers]), None)
        left = deque(in_turns(ledgers))
        while left and not (grown and self.clock() - began_ms >= SLICE_MS):
            ledger = left.popleft()
            failures.around("fan_out", ledger.name, partial(self._serve, ledger), None)
        if left:
            failures.around("rest", "", partial(self.rest.ring, list(left)), None)
        return failures

    def _serve(self, ledger: Ledger) -> None:
        if not self.broadcast(ledger) and not self.may_go_on():
            self.rest.ring([ledger])
