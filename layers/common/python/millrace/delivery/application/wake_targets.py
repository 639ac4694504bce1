"""Wake targets: for ledgers that grew, and for what is due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from millrace.delivery.application.expect_drain import ExpectDrain
from millrace.delivery.application.lag import is_willing, wakes_for
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.sources import CONTRACTS, place_of
from millrace.delivery.ports.drains import Drains
from millrace.delivery.ports.targets import Agenda, Directory, Wake, Wakes
from millrace.ledger.application.failures import Failures
from millrace.ledger.ports import Together


@dataclass(frozen=True, slots=True)
class WakeTargets:
    directory: Directory
    expect: ExpectDrain
    wakes: Wakes
    together: Together

    def __call__(self, ledgers: Sequence[str]) -> int:
        """One query of its targets per tenant. Returns how many wake-ups were sent: none to a target that is served
        or has one on its way."""
        by_tenant: dict[str, list[str]] = {}
        for ledger in ledgers:
            place = place_of(ledger)
            if place.contract in CONTRACTS:
                by_tenant.setdefault(place.tenant, []).append(ledger)
        failures, wakes = Failures(), list[Wake]()
        for tenant, grown in by_tenant.items():
            wakes += failures.around("wake", tenant, partial(self._wakes, tenant, grown, failures), list[Wake]())
        if wakes:
            self.wakes.send(wakes)
        failures.raise_first()  # every other tenant's targets are awake
        return len(wakes)

    def _wakes(self, tenant: str, ledgers: Sequence[str], failures: Failures) -> list[Wake]:
        kept = [(one.target, wake) for one in self.directory.of(tenant) for wake in wakes_for(one, ledgers)]
        if not kept:
            return []
        to_send = self.together([partial(self._to_send, target, wake, failures) for target, wake in kept])
        return [wake for wake in to_send if wake is not None]

    def _to_send(self, target: HubTarget, wake: Wake, failures: Failures) -> Wake | None:
        """One too many is better than none, if that cannot be told."""
        anyway: Wake | None = wake
        return failures.around("wake", target.key, partial(self.expect, target.target(), wake), anyway)


@dataclass(frozen=True, slots=True)
class RemindTargets:
    """Every minute: wake the targets for which a visit is due, or whose drain died, and which can be tried."""

    directory: Directory
    agenda: Agenda
    drains: Drains
    wakes: Wakes
    clock: Callable[[], int]
    may_go_on: Callable[[], bool]

    def __call__(self, failures: Failures) -> int:
        sent = 0
        for tenant in self.directory.tenants():
            if not self.may_go_on():
                break
            wakes = failures.around("remind", tenant, partial(self._due, tenant, failures), list[Wake]())
            if wakes:
                failures.around("wake", tenant, partial(self.wakes.send, wakes), None)
            sent += len(wakes)
        return sent

    def _due(self, tenant: str, failures: Failures) -> list[Wake]:
        now_ms = self.clock()
        drains = {drain.target_id: drain.lives(now_ms) for drain in self.drains.of(tenant)}
        willing = [kept.target for kept in self.directory.of(tenant) if is_willing(kept, now_ms)]
        return [
            Wake(tenant, target.id)
            for target in willing
            if drains.get(target.id) is False
            or failures.around("remind", target.key, partial(self._has_due, target, now_ms), otherwise=False)
        ]

    def _has_due(self, target: HubTarget, now_ms: int) -> bool:
        return bool(self.agenda.due(target.target(), now_ms, 1))
