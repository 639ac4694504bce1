"""CloseStrangers: end a connection that has not said who it is in time. Anybody can open one, and it costs a place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millrace.live.ports import Connections, Wire


@dataclass(frozen=True, slots=True)
class CloseStrangers:
    connections: Connections
    wire: Wire
    clock: Callable[[], int]

    def __call__(self, connection: str) -> bool:
        """Whether it was a stranger. Raises `Unavailable` when that cannot be told yet: ask again."""
        if not self.connections.is_stranger(connection, self.clock()):
            return False
        # Closed first: were it forgotten first and this ended in between, nobody would close it any more.
        self.wire.close(connection)
        self.connections.remove(connection)
        return True
