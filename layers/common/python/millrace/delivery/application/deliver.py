"""Deliver: one drain of one of the hub's targets, asked for by a wake-up.

Why a drain may die at any call and its work goes on in seconds: a wake-up that is not kept comes again by itself, and
by then the lease has ended. Whatever another wake-up asked for meanwhile is noted before its message goes. Anything
that is left is asked for before this message goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from millrace.delivery.application.dispatch import Dispatch, Drained
from millrace.delivery.application.lag import Lag
from millrace.delivery.application.shift import Shift
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.deliveries import DeliveryLedger, DeliveryReceiver, TargetStates
from millrace.delivery.ports.drains import Beating, Drains, Taken
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
class Delivered:
    """What a wake-up came to. `drained`: its last drain; None if there was none, because the target is gone, paused or
    served by another, which was asked to look for more. `after_death`: it went on where a drain had died."""

    drained: Drained | None = None
    failed: Unavailable | None = None
    """Storage interrupted the drain. What was asked for is noted."""
    cut: bool = False
    """There may be more to send: another drain was asked for."""
    asked: bool = False
    """Another wake-up asked this drain to look for more."""
    after_death: bool = False

    @property
    def most_events(self) -> int:
        return self.drained.most_events if self.drained else 0

    def after(self, before: Delivered) -> Delivered:
        """With what an earlier drain of the same wake-up counted."""
        first, last = before.drained, self.drained or before.drained
        if first is not None and last is not None and last is not first:
            last = replace(last, counts=Counter(first.counts) + Counter(last.counts))
        return replace(self, drained=last, after_death=self.after_death or before.after_death)


@dataclass(frozen=True, slots=True)
class Deliver:
    directory: Directory
    states: TargetStates
    agenda: Agenda
    lag: Lag
    drains: Drains
    wakes: Wakes
    ledger: Callable[[tuple[str, ...], Callable[[], bool], Callable[[str], bool]], DrainLedger]
    """Of a drain that was woken for these ledgers; whether it may go on, and whether its target hears of a ledger."""
    receiver: Callable[[HubTarget, Callable[[], bool]], DeliveryReceiver]
    """It asks before each request whether it may be sent."""
    beating: Beating
    clock: Callable[[], int]
    random: Callable[[], float]
    new_id: Callable[[], str]
    has_time: Callable[[], bool]
    """For one more request."""
    schedule: Schedule

    def __call__(self, wake: Wake, keep: Callable[[], None] = lambda: None) -> Delivered:
        """Raises `Unavailable` if storage failed and what was asked for could not be noted: ask again."""
        shift = Shift(self.drains, self.clock, self.new_id(), keep, self.has_time)
        shift.beat()
        with self.beating(shift.beat):
            return self._serve(shift, wake)

    def _serve(self, shift: Shift, wake: Wake) -> Delivered:
        """Drain, and again as long as others ask for it meanwhile and it is this target's turn."""
        delivered, again = Delivered(), Wake(wake.tenant, wake.target_id)
        while True:
            kept = self.directory.get(wake.tenant, wake.target_id)
            if kept is None or kept.target.paused:
                return delivered  # whoever lets it go on asks for a scan
            if wake.scan and not self._scan(kept.target, shift):
                self.wakes.send([replace(wake, ledgers=())])
            taken = self._take(shift, kept.target, wake.ledgers)
            if not taken.began:
                return delivered
            before = delivered
            delivered = self._drain(shift, kept.target, wake, after_death=taken.other is not None).after(before)
            if delivered.failed or not (delivered.cut or delivered.asked):
                return delivered
            if delivered.cut or not shift.may_go_on():
                self.wakes.send([replace(again, most_events=delivered.most_events)])
                return delivered
            wake = again

    def _take(self, shift: Shift, target: HubTarget, ledgers: tuple[str, ...]) -> Taken:
        """Take the lease. If another drain holds it, what this wake-up asks for is noted, and that one looks again."""
        while True:
            taken = shift.take(target)
            if taken.began:
                return taken
            if ledgers:
                self.agenda.note(target.target(), ledgers)
            if taken.other is not None and self.drains.ask(taken.other):
                return taken

    def _drain(self, shift: Shift, target: HubTarget, wake: Wake, *, after_death: bool) -> Delivered:
        served = _Served(self, shift, target, self.clock())
        ledger = self.ledger(wake.ledgers, served.still, target.hears)
        dispatch = Dispatch(ledger, self.states, self.clock, self.random, self.schedule, served.still)
        try:
            receiver = self.receiver(target, shift.may_send)
            drained = dispatch(target.target(), receiver, most_events=wake.most_events)
            self._leave(target.target(), ledger)
        except Unavailable as error:
            self._leave(target.target(), ledger)
            with suppress(Unavailable):
                shift.end()
            return Delivered(failed=error, after_death=after_death)
        cut = drained.cut or not (served.still() or drained.blocked or drained.open_until_ms)
        return Delivered(drained, cut=cut, asked=shift.end(), after_death=after_death)

    def _leave(self, target: Target, ledger: DrainLedger) -> None:
        """What the wake-up asked for and did not get is visited as soon as it can be."""
        left = list(ledger.unfinished)
        if left:
            self.agenda.note(target, left)

    def _scan(self, target: HubTarget, shift: Shift) -> bool:
        """Note every ledger in which the target is behind; False if time ran out."""
        behind = self.lag.of(target)
        while group := list(islice(behind, 64)):
            self.agenda.note(target.target(), group)
            if not (shift.may_go_on()):
                return False
        return True


@dataclass(slots=True)
class _Served:
    """Whether the drain may go on: it is its turn, and its target has not been paused, changed or deleted."""

    deliver: Deliver
    shift: Shift
    target: HubTarget
    looked_ms: int
    ended: bool = False

    def still(self) -> bool:
        if self.ended or not self.shift.may_go_on():
            return False
        now_ms = self.deliver.clock()
        if now_ms - self.looked_ms >= LOOK_AGAIN_MS:
            self.looked_ms = now_ms
            kept = self.deliver.directory.get(self.target.tenant, self.target.id)
            self.ended = kept is None or kept.target != self.target
        return not self.ended
