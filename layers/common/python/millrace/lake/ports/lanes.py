"""What the archive needs beside the log and an object store: its reservations. Each docstring is the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Reservation:
    """An object that is being made: its name, and the positions (first, last) it takes of each ledger."""

    name: str
    spans: Mapping[str, tuple[int, int]]
    events: int
    """Fewer than positions if some were pruned before they could be archived; 0: there is nothing to put."""


@dataclass(frozen=True, slots=True)
class Lane:
    """Some of the ledgers, archived one object at a time. Each change makes the next version."""

    version: int = 0
    reservation: Reservation | None = None


class Lanes(Protocol):
    def load(self, number: int) -> Lane:
        """The lane as it stands, strongly consistent; version 0 if nothing was ever reserved in it."""

    def store(self, number: int, lane: Lane) -> bool:
        """Store it if the stored version is one less; False, changing nothing, if the lane went on without us."""
