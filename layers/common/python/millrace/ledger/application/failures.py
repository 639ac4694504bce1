"""Failures: of the many things that a worker does, one that fails holds no other back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """A piece of work to be done again. `subject`: the ledger, target or tenant it was for."""

    step: str
    subject: str
    error: Exception


@dataclass(slots=True)
class Failures:
    """What a worker could not do. It goes on with the rest; at the end, its caller hears of all."""

    found: list[Failure] = field(default_factory=list)
    passed_on: list[Failure] = field(default_factory=list)
    """What somebody else was asked to do again: told, and not raised."""

    def around(self, step: str, subject: str, work: Callable[[], T], otherwise: T) -> T:
        """What the work gives, or `otherwise` if it fails, whatever the reason: nobody foresees every poison."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - kept, logged and raised by the caller, once all else is done
            self.found.append(Failure(step, subject, error))
            return otherwise

    def raise_first(self) -> None:
        """So that somebody does it again; to be called when all else is done."""
        if self.found:
            raise self.found[0].error
