"""Lag: in which ledgers a target is behind, whatever became of the doorbells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from millrace.delivery.application.expect_drain import ExpectDrain
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.sources import place_of
from millrace.delivery.ports.targets import Directory, Kept, Position, Positions, Wake, Wakes
from millrace.ledger.application.failures import Failures
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Log, State, Together

SIDE_BY_SIDE = 64


@dataclass(frozen=True, slots=True)
class Lag:
    log: Log
    state: State
    positions: Positions
    together: Together
    clock: Callable[[], int]

    def of(self, target: HubTarget, late_ms: int = 0) -> Iterator[str]:
        """Every ledger that the target hears of and has not read to the end, starting anywhere."""
        mine = (ledger for ledger in self.state.ledgers() if _concerns(target, ledger.name))
        while group := list(islice(mine, SIDE_BY_SIDE)):
            yield from self.among(target, group, late_ms)

    def among(self, target: HubTarget, ledgers: Sequence[Ledger], late_ms: int = 0) -> list[str]:
        """Of these ledgers, those that it has not read to the end, and should have so long ago."""
        known = self.positions.of(target.target(), [ledger.name for ledger in ledgers])
        calls = [partial(self._is_behind, ledger, known.get(ledger.name), late_ms) for ledger in ledgers]
        return [ledger.name for ledger, behind in zip(ledgers, self.together(calls), strict=True) if behind]

    def _is_behind(self, ledger: Ledger, position: Position | None, late_ms: int) -> bool:
        at = position.at if position and position.at else self.state.marks(ledger).floor - 1
        page = self.log.holding(ledger, at + 1)
        return page is not None and page.end > at and page.time_ms <= self.clock() - late_ms


@dataclass(frozen=True, slots=True)
class SweepTargets:
    """Wake every target that is late in a ledger: its doorbell was lost."""

    lag: Lag
    directory: Directory
    expect: ExpectDrain
    wakes: Wakes
    late_ms: int
    clock: Callable[[], int]

    def __call__(self, failures: Failures) -> Callable[[Sequence[Ledger]], int]:
        """Reads who there is, once. Returns what wakes them for some ledgers, and says how many wake-ups it sent."""
        targets = {
            tenant: failures.around("targets", tenant, partial(self._willing, tenant), list[HubTarget]())
            for tenant in self.directory.tenants()
        }
        targets = {tenant: group for tenant, group in targets.items() if group}
        return partial(self._look, targets, failures)

    def _look(self, targets: dict[str, list[HubTarget]], failures: Failures, ledgers: Sequence[Ledger]) -> int:
        wakes = list(self._late(targets, ledgers, failures))
        if wakes:
            failures.around("wake", "", partial(self.wakes.send, wakes), None)
        return len(wakes)

    def _willing(self, tenant: str) -> list[HubTarget]:
        return [kept.target for kept in self.directory.of(tenant) if is_willing(kept, self.clock())]

    def _late(
        self, targets: dict[str, list[HubTarget]], ledgers: Sequence[Ledger], failures: Failures
    ) -> Iterator[Wake]:
        for tenant in {place_of(ledger.name).tenant for ledger in ledgers} & targets.keys():
            for target in targets[tenant]:
                mine = [ledger for ledger in ledgers if _concerns(target, ledger.name)]
                look = partial(self.lag.among, target, mine, self.late_ms)
                late = failures.around("lag", target.key, look, list[str]()) if mine else []
                if late:
                    yield from self._wakes(target, Wake(tenant, target.id, tuple(late)), failures)

    def _wakes(self, target: HubTarget, wake: Wake, failures: Failures) -> Iterator[Wake]:
        """None if one is on its way. One too many is better than none, if that cannot be told."""
        anyway: Wake | None = wake
        sent = failures.around("wake", target.key, partial(self.expect, target.target(), wake), anyway)
        if sent is not None:
            yield sent


def is_willing(kept: Kept, now_ms: int) -> bool:
    """Neither paused nor left alone for now."""
    return not kept.target.paused and not kept.state.paused_why and kept.state.circuit.allows(now_ms)


def wakes_for(kept: Kept, ledgers: Sequence[str]) -> Iterator[Wake]:
    """A wake-up, if the target hears of one of these ledgers. A paused one is not woken: when it goes on it looks for
    itself."""
    mine = tuple(ledger for ledger in ledgers if _concerns(kept.target, ledger))
    if mine and not kept.target.paused and not kept.state.paused_why:
        yield Wake(kept.target.tenant, kept.target.id, mine)


def _concerns(target: HubTarget, ledger: str) -> bool:
    return place_of(ledger).tenant == target.tenant and target.hears(ledger)
