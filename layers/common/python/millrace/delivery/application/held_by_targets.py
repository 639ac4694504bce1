"""Held by targets: how far retention may go in a ledger without taking what a target still needs (C8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millrace.delivery.domain.source_access import may_read
from millrace.delivery.domain.sources import place_of
from millrace.delivery.ports.targets import Directory, Kept, Positions
from millrace.ledger.domain.access import Identity

OTHERS = "other_targets"


@dataclass(frozen=True, slots=True)
class HeldByTargets:
    directory: Directory
    positions: Positions

    def __call__(self, ledger: str) -> int | None:
        """
        The highest position that no target needs any more; None if no target hears of this ledger.

        A paused target holds too, and so does one that has never been here. What will be tried again by itself is
        needed, although the cursor is past it; what was given up is not. A deleted target holds nothing. One whose row
        cannot be read holds everything of its tenant: nobody knows what it hears of.
        """
        return min((at for _, at in self._each(ledger)), default=None)

    def named(self, identity: Identity, ledger: str) -> dict[str, int]:
        """The same by target; those that the bearer may not see are one."""
        holders: dict[str, int] = {}
        for kept, at in self._each(ledger):
            seen = kept is not None and all(may_read(identity, source) for source in kept.target.sources)
            name = f"target:{kept.target.id}" if kept is not None and seen else OTHERS
            holders[name] = min(at, holders.get(name, at))
        return holders

    def _each(self, ledger: str) -> Iterator[tuple[Kept | None, int]]:
        everything = self.directory.everything(place_of(ledger).tenant)
        if everything.unreadable:
            yield None, 0
        for kept in everything.kept:
            if kept.target.hears(ledger):
                target = kept.target.target()
                position = self.positions.of(target, [ledger]).get(ledger)
                lowest = self.positions.lowest_open(target, ledger)
                at = position.at if position else 0
                yield kept, at if lowest is None else min(at, lowest - 1)
