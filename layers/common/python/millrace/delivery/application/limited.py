"""Limited: a receiver that is sent no more than so many events a second (D6).

Only the drain that holds a target's lease sends, and it hands `next_ms` over to the next one. So the limit holds over
all instances: in T seconds at most `per_second` x T events and one request more. A drain that dies hands nothing over,
which costs one request more. A request holds one second's worth of events, or one event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millrace.delivery.domain.outcomes import Answer, Verdict
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.targets import Blocked
from millrace.delivery.ports.deliveries import DeliveryReceiver

LONGEST_WAIT_MS = 10_000
"""One event at the lowest rate. Whatever another clock handed over, nobody waits longer."""


@dataclass(slots=True)
class Limited:
    receiver: DeliveryReceiver
    per_second: float
    next_ms: int
    clock: Callable[[], int]
    wait: Callable[[int], None]

    @property
    def most_events(self) -> int:
        return max(1, min(self.receiver.most_events, int(self.per_second)))

    @property
    def most_bytes(self) -> int:
        return self.receiver.most_bytes

    def gate(self) -> tuple[Blocked, str] | None:
        return self.receiver.gate()

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        early_ms = min(self.next_ms - self.clock(), LONGEST_WAIT_MS)
        if early_ms > 0:
            self.wait(early_ms)
        before = self.next_ms
        self.next_ms = self.clock() + int(len(picks) * 1000 / self.per_second)
        answer = self.receiver.deliver(picks)
        if answer.verdict is Verdict.NOT_SENT:
            self.next_ms = before
        return answer
