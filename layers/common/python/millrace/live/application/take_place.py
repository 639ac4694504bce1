"""Take a place: one tenant has only so many connections and subscriptions at once.

Each takes its place before it counts: two that come at once for the last place may both be refused, never both stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from millrace.ledger.domain.errors import Throttled
from millrace.live.ports import Places

RETRY_MS = 10_000


class NoPlace(Throttled):
    """Another connection or subscription of the tenant has to end first."""

    retry_after_ms = RETRY_MS


@dataclass(frozen=True, slots=True)
class TakePlace:
    places: Places
    most_connections: int
    most_subscriptions: int

    def for_connection(self, tenant: str, connection: str) -> None:
        """Raises `NoPlace`."""
        if self.places.of_connection(tenant, connection) > self.most_connections:
            self.places.leave(tenant, connection)
            text = "The tenant has all the connections it may have; close one first."
            raise NoPlace(text, max_connections=self.most_connections)

    def for_subscription(self, tenant: str, connection: str, id_: str) -> None:
        """Raises `NoPlace`; whoever added the subscription removes it."""
        if self.places.of_subscription(tenant, connection, id_) > self.most_subscriptions:
            text = "The tenant has all the subscriptions it may have; end one first."
            raise NoPlace(text, max_subscriptions=self.most_subscriptions)
