"""SendSnapshot: send a slice of what is retained to a subscription, then go live, or hand the rest over.

A snapshot of any length is sent in slices, one sender after the other. Each posts what it can in its time, makes the
handover durable in the subscription's row, and only then sends the message that brings the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from millrace.ledger.application.read_log import ReadLog, retained_from
from millrace.ledger.domain.errors import MillraceError, Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event
from millrace.ledger.ports import Log, State, Together
from millrace.live.application.broadcast import concerns, is_lost
from millrace.live.ports import Handover, Handovers, Subscription, Subscriptions

BATCH = 200
SENDER_MS = 24_000
"""Less than the function has: a sender that takes longer ends with an error and a closed connection."""
SLICE_MS = 12_000
"""After this, the rest is handed over. A post that hangs takes seconds, and the sender's time must not run out."""
HANDOVER_MS = 60_000
"""How long a handover may wait for its next sender. A connection whose snapshot nobody sends is closed."""

Send = Callable[[Subscription, str, Event], bool]


class Overtaken(MillraceError):
    """The floor has passed what a subscription was still to be sent: `lost` is the first position that is gone, `left`
    the first that is there. A `watermark` of 0: the snapshot was over."""

    def __init__(self, lost: int, left: int, watermark: int) -> None:
        super().__init__("Events that were still to be sent are gone.")
        self.lost, self.left, self.watermark = lost, left, watermark


@dataclass(frozen=True, slots=True)
class SendSnapshot:
    log: Log
    state: State
    subscriptions: Subscriptions
    handovers: Handovers
    together: Together
    clock: Callable[[], int]
    slice_ms: int = SLICE_MS

    def __call__(self, mine: Subscription, sent: int, watermark: int, step: int, send: Send) -> bool:
        """Goes on after `sent`. False as soon as `send` says that the connection is gone. Raises `Overtaken` when what
        is to be sent was pruned, `Unavailable` when the connection has to be closed."""
        ends_ms = self.clock() + self.slice_ms
        phase, through = "snapshot", watermark
        while True:
            reached = self._send(mine, phase, sent, through, ends_ms, send)
            if reached is None:
                return False
            if reached < through:
                self._hand_over(mine, reached, watermark, step)
                return True
            sent = max(sent, through)
            noted = self.subscriptions.go_live(mine, sent)
            if noted is None:
                return True
            phase, through = "live", noted

    def _send(self, to: Subscription, phase: str, after: int, through: int, ends_ms: int, send: Send) -> int | None:
        """How far it is sent: `through`, or less when the slice is over. None: the connection is gone."""
        for event in self._events(to, after, through):
            if is_lost(to, event):
                raise self._overtaken(to, event.position, through, through if phase == "snapshot" else 0)
            if self.clock() > to.sender_until_ms:
                raise Unavailable("A part of the snapshot took too long; subscribe again.")
            if not send(to, phase, event):
                return None
            if self.clock() >= ends_ms:
                return event.position
        return through

    def _hand_over(self, mine: Subscription, sent: int, watermark: int, step: int) -> None:
        """A subscription that was removed meanwhile needs nobody."""
        if self.subscriptions.hand_over(mine, step, self.clock() + HANDOVER_MS):
            self.handovers.send(Handover(mine.connection, mine.id, mine.ledger, sent, watermark, step + 1))

    def _overtaken(self, subscription: Subscription, lost: int, through: int, watermark: int) -> Overtaken:
        ledger = Ledger.to_read(subscription.ledger)
        left = retained_from(self.log, self.together, ledger, max(lost, self.state.marks(ledger).floor), through)
        return Overtaken(lost, left, watermark)

    def _events(self, subscription: Subscription, after: int, through: int) -> Iterator[Event]:
        read = ReadLog(self.log, self.together)
        for pages in read.batches(Ledger.to_read(subscription.ledger), after, through, BATCH):
            for page in pages:
                for event in page.events():
                    wanted = is_lost(subscription, event) or concerns(subscription, event)
                    if after < event.position <= through and wanted:
                        yield event
