"""The rule of selection: which events of a ledger are due at a target, in which order, and how many go at once (D6).

A journal only fetches. It hands over what is open and what is new, each in the order that `choose` asks for; nothing is
read further than the rule looks, so the cost follows what is selected (D9).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from millrace.delivery.domain.families import Family
from millrace.delivery.domain.states import OPEN, Delivery, Status
from millrace.delivery.domain.targets import Target

HOLDING = Status.TRANSIENT
"""Holds back the new events of its ledger, and those of its own status that come later."""
WAITING = OPEN - {HOLDING}
"""Tried again when their time has come; they hold back nothing."""


@dataclass(frozen=True, slots=True)
class Pick:
    """An event that is due at a target. `delivery` is what it has been through there; None: never attempted."""

    position: int
    event_id: str
    body: bytes
    delivery: Delivery | None = None
    trace: str = ""
    """The `traceparent` of the call in which the event came, if its caller said which."""


@dataclass(frozen=True, slots=True)
class Selection:
    """`through`: where the cursor stands once each pick has a delivery; all before it was looked at."""

    picks: Sequence[Pick]
    through: int


@dataclass(frozen=True, slots=True)
class OpenRun:
    """Deliveries that are to be tried again, all alike. `picks` is looked at only if their time has come; an event
    whose bytes are gone is not among them."""

    delivery: Delivery
    picks: Iterable[Pick]

    def due(self, now_ms: int) -> bool:
        return (self.delivery.next_ms or 0) <= now_ms


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event after the cursor. Without `pick` there is nothing to send: it has a delivery, or its bytes are gone."""

    position: int
    event_type: str = ""
    family: Family = Family.TEAMSPACE
    pick: Pick | None = None

    def wanted_by(self, target: Target) -> Pick | None:
        return self.pick if target.wants(self.event_type, self.family) else None


@dataclass(slots=True)
class Batch:
    """What goes to a target at once; the first event does, whatever its size. `full`: one more was refused."""

    most_events: int
    most_bytes: int
    picks: list[Pick] = field(default_factory=list)
    used: int = 0
    full: bool = False

    def put(self, pick: Pick) -> bool:
        weight = len(pick.body) + 1
        if self.picks and (len(self.picks) >= self.most_events or self.used + weight > self.most_bytes):
            self.full = True
            return False
        self.picks.append(pick)
        self.used += weight
        return True

    def put_due(self, runs: Iterable[OpenRun], now_ms: int) -> bool:
        """Up to the first run whose time has not come. Returns whether there was any run, due or not."""
        found = False
        for run in runs:
            found = True
            if not run.due(now_ms) or not all(self.put(pick) for pick in run.picks):
                break
        return found


def choose(
    target: Target,
    batch: Batch,
    now_ms: int,
    cursor: int,
    *,
    transient: Iterable[OpenRun],
    waiting: Iterable[OpenRun],
    new: Iterable[NewEvent],
) -> Selection:
    """
    What to attempt next, in order of position; at least one if one is due.

    Of the transient, by position, those whose time has come, up to the first whose time has not. Then of the pending
    and the rejected, by the time they wait for, those whose time has come. Then, only if nothing is transient, of the
    events after the cursor, by position, those that the target wants.
    """
    held = batch.put_due(transient, now_ms)
    if not batch.full:
        batch.put_due(waiting, now_ms)
    through = cursor
    if not held and not batch.full:
        for event in new:
            pick = event.wanted_by(target)
            if pick is not None and not batch.put(pick):
                break
            through = event.position
    return Selection(sorted(batch.picks, key=lambda pick: pick.position), through)
