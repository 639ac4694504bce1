"""Held by targets: how far retention may go in a ledger without taking what a target still needs (C8)."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.delivery.domain.sources import place_of
from millrace.delivery.ports.targets import Directory, Positions


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
        everything = self.directory.everything(place_of(ledger).tenant)
        free = [0] if everything.unreadable else list[int]()
        for kept in everything.kept:
            if kept.target.hears(ledger):
                target = kept.target.target()
                position = self.positions.of(target, [ledger]).get(ledger)
                lowest = self.positions.lowest_open(target, ledger)
                at = position.at if position else 0
                free.append(at if lowest is None else min(at, lowest - 1))
        return min(free, default=None)
