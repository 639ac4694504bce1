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
from millrace.delivery.application.limited import Limited
from millrace.delivery.application.paced import Paced
from millrace.delivery.application.shift import Shift
from millrace.delivery.application.take_turns import TakeTurns
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.deliveries import DeliveryLedger, DeliveryReceiver, TargetStates
from millrace.delivery.ports.drains import Beating, Drains, LeaseTaken, Paces
from millrace.delivery.ports.targets import Agenda, Directory, Kept, Wake, Wakes
from millrace.ledger.domain.errors import Unavailable, UnreadableRow, unheard

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
    turns: TakeTurns
    paces: Paces
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
    unreadable: Callable[[UnreadableRow], None] = unheard
    wait: Callable[[int], None] = lambda _: None
    """For so many milliseconds; only drains of targets with a rate limit do."""

    def __call__(self, wake: Wake, keep: Callable[[], None] = lambda: None) -> Delivered:
        """Raises `Unavailable` if storage failed and what was asked for could not be noted: ask again."""
        shift = Shift(self.drains, self.clock, self.new_id(), keep, self.has_time)
        shift.beat()
        with self.beating(shift.beat):
            return self._serve(shift, wake)

    def _serve(self, shift: Shift, wake: Wake) -> Delivered:
        """Drain, and again as long as others ask for it meanwhile and it is this target's turn."""
        delivered = Delivered()
        while True:
            kept = self.directory.get(wake.tenant, wake.target_id)
            if kept is None or kept.target.paused:
                return delivered  # whoever lets it go on asks for a scan
            if not kept.state.quick and not wake.slow:
                self._pass_on(kept.target, wake)
                return delivered
            if wake.scan and not self._scan(kept.target, shift):
                self.wakes.send([replace(wake, ledgers=())])
            taken = self._take(shift, kept.target, wake)
            if not taken.began or not self._has_turn(shift, kept.target, wake):
                return delivered
            before = delivered
            delivered = self._drain(shift, kept, wake, after_death=taken.other is not None).after(before)
            self.turns.call(wake.tenant, slow=wake.slow)
            if delivered.failed or not (delivered.cut or delivered.asked):
                return delivered
            if delivered.cut or not shift.may_go_on():
                self.wakes.send([Wake(wake.tenant, wake.target_id, (), False, delivered.most_events, wake.slow)])
                return delivered
            wake = Wake(wake.tenant, wake.target_id, slow=wake.slow)

    def _pass_on(self, target: HubTarget, wake: Wake) -> None:
        """To the slots of slow targets; if it is served or stands in line there, a note will do."""
        if wake.ledgers:
            self.agenda.note(target.target(), wake.ledgers)
        now_ms = self.clock()
        for drain in self.drains.of(wake.tenant):
            if drain.target_id == target.id and drain.lives(now_ms) and not wake.scan and self.drains.ask(drain):
                return
        if wake.scan or not self.turns.stays_in_line(target):
            self.wakes.send([replace(wake, ledgers=(), slow=True)])

    def _take(self, shift: Shift, target: HubTarget, wake: Wake) -> LeaseTaken:
        """Take the lease. If another drain holds it, what this wake-up asks for is noted, and that one looks again."""
        while True:
            taken = shift.take(target, slow=wake.slow)
            if taken.began:
                return taken
            if wake.ledgers:
                self.agenda.note(target.target(), wake.ledgers)
            if taken.other is not None and self.drains.ask(taken.other):
                return taken

    def _has_turn(self, shift: Shift, target: HubTarget, wake: Wake) -> bool:
        """If its tenant has its share of drains, the target stands in line, and what was asked for is noted."""
        mine = shift.drain
        if mine is None or self.turns.has_turn(mine):
            return True
        if wake.ledgers:
            self.agenda.note(target.target(), wake.ledgers)
        self.turns.wait(mine)
        shift.end()
        self.drains.expect(wake.tenant, wake.target_id, self.clock())  # whoever makes room calls it
        self.turns.call(wake.tenant, slow=wake.slow)
        return False

    def _drain(self, shift: Shift, kept: Kept, wake: Wake, *, after_death: bool) -> Delivered:
        target = kept.target
        served = _Served(self, shift, target, self.clock())
        ledger = self.ledger(wake.ledgers, served.still, target.hears)
        dispatch = Dispatch(
            ledger, self.states, self.clock, self.random, self.schedule, served.still, unreadable=self.unreadable
        )
        try:
            paced = Paced(self.receiver(target, shift.may_send), self.clock)
            served.paced = None if wake.slow else paced
            limited = self._limited(target, paced)
            drained = dispatch(target.target(), limited or paced, most_events=wake.most_events)
            self._leave(target.target(), ledger)
            if limited is not None and limited.next_ms > self.clock():
                self.paces.hand_over(target.key, limited.next_ms)
            if paced.quick is not None and paced.quick != kept.state.quick:
                self.paces.pace(target.key, quick=paced.quick)
        except Unavailable as error:
            self._leave(target.target(), ledger)
            with suppress(Unavailable):
                shift.end()
            return Delivered(failed=error, after_death=after_death)
        cut = drained.cut or not (shift.may_go_on() or drained.blocked or drained.open_until_ms)
        return Delivered(drained, cut=cut, asked=shift.end(), after_death=after_death)

    def _limited(self, target: HubTarget, paced: Paced) -> Limited | None:
        """It goes on at the pace that the last drain handed over. Read under the lease: nobody else sends by now."""
        if target.max_per_second is None:
            return None
        next_ms = self.states.get(target.key).next_send_ms
        return Limited(paced, target.max_per_second, next_ms, self.clock, self.wait)

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
            if not shift.may_go_on():
                return False
        return True


@dataclass(slots=True)
class _Served:
    """Whether the drain may go on: it is its turn, and its target has not been paused, changed or deleted. `paced`:
    of a drain in a slot of quick targets, which ends once its target is slow."""

    deliver: Deliver
    shift: Shift
    target: HubTarget
    looked_ms: int
    paced: Paced | None = None
    ended: bool = False

    def still(self) -> bool:
        if self.ended or not self.shift.may_go_on() or (self.paced is not None and self.paced.quick is False):
            return False
        now_ms = self.deliver.clock()
        if now_ms - self.looked_ms >= LOOK_AGAIN_MS:
            self.looked_ms = now_ms
            kept = self.deliver.directory.get(self.target.tenant, self.target.id)
            self.ended = kept is None or kept.target != self.target
        return not self.ended
