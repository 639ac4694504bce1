"""Paced: a receiver whose answers are timed, for a slow target is served apart from quick ones (D6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millrace.delivery.domain.drains import QUICK_MS
from millrace.delivery.domain.outcomes import Answer, Verdict
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.targets import Blocked
from millrace.delivery.ports.deliveries import DeliveryReceiver

FAILED = (Verdict.HELD, Verdict.UNREACHED)


@dataclass(slots=True)
class Paced:
    receiver: DeliveryReceiver
    clock: Callable[[], int]
    quick: bool | None = None
    """Whether every request so far was answered soon; None if nothing was sent."""

    @property
    def most_events(self) -> int:
        return self.receiver.most_events

    @property
    def most_bytes(self) -> int:
        return self.receiver.most_bytes

    def gate(self) -> tuple[Blocked, str] | None:
        return self.receiver.gate()

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        began_ms = self.clock()
        answer = self.receiver.deliver(picks)
        if answer.verdict is not Verdict.NOT_SENT:
            soon = answer.verdict not in FAILED and self.clock() - began_ms <= QUICK_MS
            self.quick = soon and self.quick is not False
        return answer
