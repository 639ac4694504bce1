"""Subscribe: send what is retained of a ledger as a snapshot, then go live, without loss, repeat or mixing.

The subscription is durable before the head is read. Until it goes live, fan-out leaves a note instead of posting;
going live fails while a note asks for more, so whatever fan-out passed over is sent by the snapshot's sender.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.application.read_log import ReadLog, retained_from
from millrace.ledger.domain.errors import BadRequest, MillraceError, Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event
from millrace.ledger.ports import Log, State, Together
from millrace.live.application.broadcast import concerns, is_lost
from millrace.live.ports import Subscription, Subscriptions


class Overtaken(MillraceError):
    """The floor has passed what a subscription was still to be sent: `lost` is the first position that is gone, `left`
    the first that is there. A `watermark` of 0: the snapshot was over."""

    def __init__(self, lost: int, left: int, watermark: int) -> None:
        super().__init__("Events that were still to be sent are gone.")
        self.lost, self.left, self.watermark = lost, left, watermark


MAX_SNAPSHOT = 1_000
BATCH = 200
SENDER_MS = 24_000
"""Less than the function has: a snapshot that takes longer ends with an error and a closed connection."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    log: Log
    state: State
    subscriptions: Subscriptions
    heads: Heads
    together: Together
    clock: Callable[[], int]

    def __call__(
        self,
        subscription: Subscription,
        start: Callable[[int, int], int],
        opened: Callable[[int, int], bool],
        send: Callable[[Subscription, str, Event], bool],
    ) -> bool:
        """`start` picks the position to begin after, given the first retained position and the head; `opened` announces
        the watermark and where it begins; `send` posts one event of a phase. False as soon as either says that the
        connection is gone. Raises `Overtaken` when what is to be sent was pruned."""
        mine = replace(subscription, after=0, sender_until_ms=self.clock() + SENDER_MS)
        self.subscriptions.add(mine)
        try:
            return self._snapshot(mine, start, opened, send)
        except MillraceError:
            self.subscriptions.remove(mine.connection, mine.id)
            raise

    def _snapshot(
        self,
        mine: Subscription,
        start: Callable[[int, int], int],
        opened: Callable[[int, int], bool],
        send: Callable[[Subscription, str, Event], bool],
    ) -> bool:
        ledger = Ledger.to_read(mine.ledger)
        marks = self.state.marks(ledger)
        watermark = newest(self.log, self.heads, ledger, marks.hint)
        begin = start(retained_from(self.log, self.together, ledger, marks.floor, watermark), watermark)
        if watermark - begin > MAX_SNAPSHOT:
            raise BadRequest(
                f"More than {MAX_SNAPSHOT} events lie before the live point; read them over HTTP first.",
                field="payload",
                events=watermark - begin,
            )
        if not opened(watermark, begin) or not self._send(mine, "snapshot", begin, watermark, send):
            return False
        sent = max(watermark, begin)
        while (noted := self.subscriptions.go_live(mine, sent)) is not None:
            if not self._send(mine, "live", sent, noted, send):
                return False
            sent = noted
        return True

    def _send(
        self,
        subscription: Subscription,
        phase: str,
        after: int,
        through: int,
        send: Callable[[Subscription, str, Event], bool],
    ) -> bool:
        for event in self._events(subscription, after, through):
            if is_lost(subscription, event):
                raise self._overtaken(subscription, event.position, through, through if phase == "snapshot" else 0)
            if self.clock() > subscription.sender_until_ms:
                raise Unavailable("The snapshot took too long; read over HTTP first, then subscribe from there.")
            if not send(subscription, phase, event):
                return False
        return True

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
