"""Fan out: send new events of ledgers to their subscribers, and wake other readers. No ledger waits for another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from millrace.ledger.application.failures import Failures
from millrace.ledger.domain.names import INDEXED, Ledger
from millrace.ledger.ports import Doorbell
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

    def __call__(self, ledgers: Sequence[Ledger], *, grown: bool) -> Failures:
        """`grown`: the log itself rang, so the indexer and the targets have to hear of it too. One failure holds
        nothing else back; the caller sees to it that these ledgers come again."""
        failures = Failures()
        if grown:
            indexed = [ledger for ledger in ledgers if ledger.contract in INDEXED]
            failures.around("index", "", partial(self.index.ring, indexed), None)
            failures.around("wake", "", partial(self.wake_targets, [ledger.name for ledger in ledgers]), None)
        for ledger in ledgers:
            failures.around("fan_out", ledger.name, partial(self._serve, ledger), None)
        return failures

    def _serve(self, ledger: Ledger) -> None:
        if not self.broadcast(ledger) and not self.may_go_on():
            self.rest.ring([ledger])
