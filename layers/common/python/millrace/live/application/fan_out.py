"""Fan out: send new events of ledgers to their subscribers, and wake other readers. No ledger waits for another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from millrace.ledger.application.failures import Failures
from millrace.ledger.domain.names import INDEXED, Ledger
from millrace.ledger.ports import Doorbell, Together
from millrace.live.domain.turns import SIDE_BY_SIDE, SLICE_MS, by_tenant, in_turns
from millrace.live.ports import DeliveryWakes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FanOut:
    index: Doorbell
    rest: Doorbell
    """Rung for a ledger when time ran out before its head was reached."""
    later: Doorbell
    """Rung for a ledger of the log's own batch that failed: heard a little later, through the queue of the rest."""
    wake_targets: DeliveryWakes
    broadcast: Callable[[Ledger], bool]
    """Brings a ledger's new events to its subscriptions; True when the head was reached."""
    may_go_on: Callable[[], bool]
    clock: Callable[[], int]
    together: Together
    """For several ledgers; what serves one of them has threads of its own."""

    def __call__(self, ledgers: Sequence[Ledger], *, grown: bool) -> Failures:
        """`grown`: the log itself rang, so the indexer and the targets have to hear of it too. One failure holds
        nothing else back; the caller sees to it that what was found comes again. Tenants take turns, some ledgers are
        served side by side, and a batch of the log is worked on for a slice only: what is left is rung for, and so is
        what failed, so that the next batch waits for neither."""
        failures, unserved, began_ms = Failures(), Failures(), self.clock()
        calls = deque(self._wake(ledgers, failures) if grown else ())
        left = deque(in_turns(ledgers))

        def serve() -> None:
            """Others are woken first, however long that takes: nobody rings for them again."""
            while (call := _next(calls)) is not None:
                call()
            while not (grown and self.clock() - began_ms >= SLICE_MS) and (ledger := _next(left)) is not None:
                unserved.around("fan_out", ledger.name, partial(self._serve, ledger), None)

        self.together([serve] * min(SIDE_BY_SIDE, len(calls) + len(left)))
        if left:
            failures.around("rest", "", partial(self.rest.ring, list(left)), None)
        if unserved.found and grown and self._passes_on(ledgers, unserved, failures):
            failures.passed_on += unserved.found
        else:
            failures.found += unserved.found
        return failures

    def _passes_on(self, ledgers: Sequence[Ledger], unserved: Failures, failures: Failures) -> bool:
        names = {failure.subject for failure in unserved.found}
        again = [ledger for ledger in ledgers if ledger.name in names]

        def ring() -> bool:
            self.later.ring(again)
            return True

        return failures.around("later", "", ring, otherwise=False)

    def _wake(self, ledgers: Sequence[Ledger], failures: Failures) -> Iterator[Callable[[], object]]:
        indexed = [ledger for ledger in ledgers if ledger.contract in INDEXED]
        yield partial(failures.around, "index", "", partial(self.index.ring, indexed), None)
        for tenant, grown in by_tenant(ledgers).items():
            names = [ledger.name for ledger in grown]
            yield partial(failures.around, "wake", tenant, partial(self.wake_targets, names), None)

    def _serve(self, ledger: Ledger) -> None:
        if not self.broadcast(ledger) and not self.may_go_on():
            self.rest.ring([ledger])


def _next(waiting: deque[T]) -> T | None:
    """Somebody else may have taken the last one."""
    try:
        return waiting.popleft()
    except IndexError:
        return None
