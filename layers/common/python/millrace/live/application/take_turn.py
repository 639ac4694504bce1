"""TakeTurn: wait until every earlier message of a connection is done, so that answers leave in order (S12, S14)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from millrace.ledger.domain.errors import Unavailable
from millrace.live.domain.line import is_stuck, pause_ms
from millrace.live.domain.messages import SocketError
from millrace.live.ports import Connections, Turn


class LineStuck(SocketError):
    """A message before this one was not done in time. To pass it would be to answer out of order."""

    def __init__(self) -> None:
        super().__init__("server_error", "An earlier message took too long; connect again and submit what is open.")


@dataclass(frozen=True, slots=True)
class TakeTurn:
    connections: Connections
    clock: Callable[[], int]
    nap: Callable[[int], None]
    """Wait about so many ms."""

    def __call__(self, connection: str, kind: str) -> Turn:
        """The turn, or why there is none. Raises `LineStuck` when the connection has to be closed."""
        arrived = self.clock()
        turn = self.connections.line_up(connection, kind, arrived)
        if turn.refused == "stuck":
            raise LineStuck
        while not turn.refused and turn.ahead > 0:
            if is_stuck(turn.served, turn.slow, turn.moved_ms, arrived, self.clock()):
                raise LineStuck
            self.nap(pause_ms(turn.ahead))
            # Whoever has a number cannot leave the line: a look that failed is made again.
            with suppress(Unavailable):
                turn = self.connections.look(connection, turn)
        return turn
