"""Deliver: one drain of one of the hub's targets, asked for by a wake-up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from millrace.delivery.application.dispatch import Dispatch, Drained
from millrace.delivery.application.lag import Lag
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.deliveries import DeliveryLedger, DeliveryReceiver, TargetStates
from millrace.delivery.ports.targets import Agenda, Directory, Wake, Wakes
from millrace.ledger.domain.errors import Unavailable

LOOK_AGAIN_MS = 5_000
"""How often a drain asks whether its target is still to be served."""


class DrainLedger(DeliveryLedger, Protocol):
    """The ledger of one drain."""

    @property
    def unfinished(self) -> Iterable[str]:
        """Of the ledgers it was woken for, those where something may be left."""


@dataclass(frozen=True, slots=True)
class Deliver:
    directory: Directory
    states: TargetStates
    agenda: Agenda
    lag: Lag
    wakes: Wakes
    ledger: Callable[[tuple[str, ...], Callable[[], bool], Callable[[str], bool]], DrainLedger]
    """Of a drain that was woken for these ledgers; whether it may go on, and whether its target hears of a ledger."""
    receiver: Callable[[HubTarget], DeliveryReceiver]
    clock: Callable[[], int]
    random: Callable[[], float]
    may_go_on: Callable[[], bool]
    schedule: Schedule

    def __call__(self, wake: Wake) -> Drained | None:
        """None if the target is gone or paused: whoever lets it go on asks for a scan."""
        kept = self.directory.get(wake.tenant, wake.target_id)
        if kept is None or kept.target.paused:
            return None
        served = _Served(self, kept.target, self.clock())
        if wake.scan and not self._scan(kept.target):
            self.wakes.send([replace(wake, ledgers=())])
        ledger = self.ledger(wake.ledgers, served.still, kept.target.hears)
        dispatch = Dispatch(ledger, self.states, self.clock, self.random, self.schedule, served.still)
        target = kept.target.target()
        try:
            drained = dispatch(target, self.receiver(kept.target))
        except Unavailable:
            self._leave(target, ledger)
            raise
        self._leave(target, ledger)
        out_of_time = not self.may_go_on()
        if out_of_time and not (drained.blocked or drained.open_until_ms):
            self.wakes.send([Wake(wake.tenant, wake.target_id)])
        return drained

    def _leave(self, target: Target, ledger: DrainLedger) -> None:
        """What the wake-up asked for and did not get is visited as soon as it can be."""
        left = list(ledger.unfinished)
        if left:
            self.agenda.note(target, left)

    def _scan(self, target: HubTarget) -> bool:
        """Note every ledger in which the target is behind; False if time ran out."""
        behind = self.lag.of(target)
        while group := list(islice(behind, 64)):
            self.agenda.note(target.target(), group)
            if not self.may_go_on():
                return False
        return True


@dataclass(slots=True)
class _Served:
    """Whether the drain may go on: it has time, and its target has not been paused, changed or deleted."""

    deliver: Deliver
    target: HubTarget
    looked_ms: int
    ended: bool = False

    def still(self) -> bool:
        if self.ended or not self.deliver.may_go_on():
            return False
        now_ms = self.deliver.clock()
        if now_ms - self.looked_ms >= LOOK_AGAIN_MS:
            self.looked_ms = now_ms
            kept = self.deliver.directory.get(self.target.tenant, self.target.id)
            self.ended = kept is None or kept.target != self.target
        return not self.ended
