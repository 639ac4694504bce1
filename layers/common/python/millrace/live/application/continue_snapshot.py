"""ContinueSnapshot: send the next slice of a snapshot that its last sender handed over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millrace.ledger.domain.errors import MillraceError, Unavailable
from millrace.live.application.send_snapshot import SENDER_MS, Overtaken, Send, SendSnapshot
from millrace.live.ports import Connections, Handover, Subscription, Wire


@dataclass(frozen=True, slots=True)
class ContinueSnapshot:
    sender: SendSnapshot
    connections: Connections
    wire: Wire
    send: Send
    farewell: Callable[[Subscription], str]
    """What an expired token is told before its connection is closed."""
    overtaken: Callable[[Subscription, Overtaken], list[str]]
    new_id: Callable[[], str]

    def __call__(self, handover: Handover) -> None:
        """A handover may come twice; one sender takes it. Raises `Unavailable` when it has to come again: somebody has
        taken it and may be alive. If that one died, the connection is closed: what it was sent is a prefix."""
        now = self.sender.clock()
        taken = self.sender.subscriptions.take_over(handover, now + SENDER_MS, self.new_id())
        if taken is None or taken.subscription.live or taken.step > handover.step + 1:
            return
        mine = taken.subscription
        if not taken.mine:
            if mine.sender_until_ms >= now:
                raise Unavailable("Another sender goes on with this snapshot.")
            self._drop(mine)
        elif mine.expires_ms <= now:
            self._post(mine, self.farewell(mine))
            self._drop(mine)
        elif not self._slice(mine, handover, taken.step):
            self._drop(mine)

    def _slice(self, mine: Subscription, handover: Handover, step: int) -> bool:
        """False when the connection must go."""
        try:
            return self.sender(mine, handover.sent, handover.watermark, step, self.send)
        except Overtaken as lost:
            self.sender.subscriptions.remove(mine.connection, mine.id)
            return all(self._post(mine, text) for text in self.overtaken(mine, lost))
        except MillraceError:
            return False  # nobody knows what arrived: a contiguous prefix, or closed

    def _post(self, mine: Subscription, text: str) -> bool:
        try:
            return self.wire.post(mine.connection, text)
        except Unavailable:
            return False

    def _drop(self, mine: Subscription) -> None:
        """If closing fails this raises, and the handover comes again."""
        self.wire.close(mine.connection)
        self.sender.subscriptions.remove(mine.connection)
        self.connections.remove(mine.connection)
