"""Ring patiently: one ring for all that comes to a ledger within a while, heard when the while is over.

Whoever hears it reads the ledger to its end. So a ring that is on its way is good for every page that was committed
before it arrives, and what dies with this process is the memory of it, never a ring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Doorbell

MARGIN_MS = 5_000
"""So long before a ring arrives nothing relies on it any more."""
OFTEN = 120
"""So often asked for meanwhile, a ledger is busy: what comes to it is heard of at once."""
REMEMBERED = 4_096


@dataclass(slots=True)
class Awaited:
    since_ms: int
    asked: int = 1


@dataclass(frozen=True, slots=True)
class PatientDoorbell:
    later: Doorbell
    """Is heard `delay_ms` after it is rung."""
    at_once: Doorbell
    delay_ms: int
    clock: Callable[[], int]
    _awaited: dict[str, Awaited] = field(default_factory=dict)

    def ring(self, ledgers: Iterable[Ledger]) -> None:
        now_ms = self.clock()
        new, busy = list[Ledger](), list[Ledger]()
        for ledger in ledgers:
            awaited = self._awaited.get(ledger.name)
            if awaited is None or not 0 <= now_ms - awaited.since_ms < self._relied_on_ms:
                new.append(ledger)
            elif awaited.asked >= OFTEN:
                busy.append(ledger)
            else:
                awaited.asked += 1
        for bell, rung in ((self.later, new), (self.at_once, busy)):
            if rung:
                bell.ring(rung)
                self._remember(rung, now_ms if bell is self.later else None)

    @property
    def _relied_on_ms(self) -> int:
        return self.delay_ms - min(MARGIN_MS, self.delay_ms // 2)

    def _remember(self, ledgers: Iterable[Ledger], rung_ms: int | None) -> None:
        """Only what the queue has taken; a busy ledger's own ring is still on its way."""
        if len(self._awaited) >= REMEMBERED:
            self._awaited.clear()
        for ledger in ledgers:
            known = self._awaited.get(ledger.name)
            if rung_ms is not None:
                self._awaited[ledger.name] = Awaited(rung_ms)
            elif known is not None:
                known.asked = 1
