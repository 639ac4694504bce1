"""Wake targets: for ledgers that grew, and for what is due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millrace.delivery.application.lag import is_willing, wakes_for
from millrace.delivery.domain.sources import CONTRACTS, place_of
from millrace.delivery.ports.targets import Agenda, Directory, Wake, Wakes


@dataclass(frozen=True, slots=True)
class WakeTargets:
    directory: Directory
    wakes: Wakes

    def __call__(self, ledgers: Sequence[str]) -> int:
        """One query of its targets per tenant. Returns how many wake-ups were sent."""
        by_tenant: dict[str, list[str]] = {}
        for ledger in ledgers:
            place = place_of(ledger)
            if place.contract in CONTRACTS:
                by_tenant.setdefault(place.tenant, []).append(ledger)
        wakes = [wake for tenant, grown in by_tenant.items() for wake in wakes_for(self.directory.of(tenant), grown)]
        if wakes:
            self.wakes.send(wakes)
        return len(wakes)


@dataclass(frozen=True, slots=True)
class RemindTargets:
    """Every minute: wake the targets for which a visit is due and which can be tried."""

    directory: Directory
    agenda: Agenda
    wakes: Wakes
    clock: Callable[[], int]
    may_go_on: Callable[[], bool]

    def __call__(self) -> int:
        sent = 0
        for tenant in self.directory.tenants():
            if not self.may_go_on():
                break
            now_ms = self.clock()
            wakes = [
                Wake(tenant, kept.target.id)
                for kept in self.directory.of(tenant)
                if is_willing(kept, now_ms) and self.agenda.has_due(kept.target.target(), now_ms)
            ]
            if wakes:
                self.wakes.send(wakes)
            sent += len(wakes)
        return sent
