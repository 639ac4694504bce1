"""What delivery needs from the world. The hub's ledgers and the client's journal both stand behind these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.outcomes import Answer
from millrace.delivery.domain.selection import Pick, Selection
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.domain.targets import Blocked, Target, TargetState


class DeliveryLedger(Protocol):
    """
    Which target has which event. Order is per (target, ledger); one drain of a target runs at a time.

    Per (target, ledger) there is a cursor, and a delivery per event that was attempted. A run of equal deliveries may
    be stored as one row.
    """

    def ledgers(self, target: Target, now_ms: int) -> Iterable[str]:
        """The ledgers that may have something due for the target. The cost follows what is found."""

    def select(self, target: Target, ledger: str, now_ms: int, events: int, size: int) -> Selection:
        """
        What to attempt next, no more than `events` or `size`: what `domain.selection.choose` makes of this ledger.

        The cost follows what is selected, not what is stored (D9).
        """

    def begin(self, target: Target, ledger: str, picks: Sequence[Pick]) -> Sequence[Pick]:
        """Freeze these events, durably: their bytes never change from here on (D5). Those replaced since are left out.
        Returns before anything is sent."""

    def record(self, target: Target, ledger: str, settled: Mapping[int, Delivery], through: int) -> None:
        """Store the deliveries by position and move the cursor to `through`, never back, together. What is delivered
        stays delivered."""


class TargetStates(Protocol):
    def get(self, target_id: str) -> TargetState:
        """A target nobody has written about is as good as new."""

    def fare(self, target_id: str, circuit: Circuit, detail: str) -> None:
        """Keep how requests to it went, and a sentence about it; a note of a block is taken away. A pause stays."""

    def block(self, target_id: str, reason: Blocked, detail: str, now_ms: int) -> None:
        """Note why nothing could be sent; everything else stays."""

    def pause(self, target_id: str, why: str) -> None:
        """Send nothing more until an empty `why` ends it; everything else stays."""


class DeliveryReceiver(Protocol):
    """The one contract every kind of target implements (D7)."""

    @property
    def most_events(self) -> int:
        """In one request."""

    @property
    def most_bytes(self) -> int:
        """In one request, before compression; an event that is larger goes alone."""

    def gate(self) -> tuple[Blocked, str] | None:
        """Why nothing may be sent now, and a sentence about it; None: go ahead. Never touches the network."""

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        """Offer the events, in order, and say what the target made of them. Never raises for what a target does."""


Place = tuple[str, int]
"""A ledger's name and a position in it."""
START: Place = ("", 0)


@dataclass(frozen=True, slots=True)
class Found:
    """A delivery with the names of what it is about."""

    target_id: str
    ledger: str
    position: int
    event_id: str
    event_type: str
    delivery: Delivery

    @property
    def place(self) -> Place:
        return self.ledger, self.position


class Deliveries(Protocol):
    """Deliveries as an operator sees them: one per event."""

    def find(self, target_id: str, status: Status | None, after: Place = START, limit: int = 100) -> Sequence[Found]:
        """Those of a target in this status, or all, in order of ledger and position after `after`."""

    def get(self, target_id: str, event_id: str) -> Found | None:
        """The delivery of one event, if it was attempted."""

    def replace(self, found: Found, delivery: Delivery) -> bool:
        """Put `delivery` in place of the one that was found; False if it has changed since."""


class Audits(Protocol):
    def audit(self, what: str, subjects: Sequence[str], detail: str, now_ms: int) -> None:
        """Write down what happened to these events, for ever."""
