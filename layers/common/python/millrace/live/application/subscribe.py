"""Subscribe: send what is retained of a ledger as a snapshot, then go live, without loss, repeat or mixing.

The subscription is durable before the head is read. Until it goes live, fan-out leaves a note instead of posting;
going live fails while a note asks for more, so whatever fan-out passed over is sent by the snapshot's sender.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.application.read_log import retained_from
from millrace.ledger.domain.errors import MillraceError
from millrace.ledger.domain.names import Ledger
from millrace.live.application.send_snapshot import SENDER_MS, Send, SendSnapshot
from millrace.live.ports import Subscription


@dataclass(frozen=True, slots=True)
class Subscribe:
    sender: SendSnapshot
    heads: Heads

    def __call__(
        self,
        subscription: Subscription,
        start: Callable[[int, int], int],
        opened: Callable[[int, int], bool],
        send: Send,
    ) -> bool:
        """`start` picks the position to begin after, given the first retained position and the head; `opened` announces
        the watermark and where it begins; `send` posts one event of a phase. False as soon as either says that the
        connection is gone. Raises `Overtaken` when what is to be sent was pruned. What does not fit into one slice is
        sent by others, after this has returned."""
        sender = self.sender
        mine = replace(subscription, after=0, sender_until_ms=sender.clock() + SENDER_MS)
        sender.subscriptions.add(mine)
        try:
            ledger = Ledger.to_read(mine.ledger)
            marks = sender.state.marks(ledger)
            watermark = newest(sender.log, self.heads, ledger, marks.hint)
            begin = start(retained_from(sender.log, sender.together, ledger, marks.floor, watermark), watermark)
            return opened(watermark, begin) and sender(mine, begin, watermark, 0, send)
        except MillraceError:
            sender.subscriptions.remove(mine.connection, mine.id)
            raise
