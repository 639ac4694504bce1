"""What keeps two drains of a target apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from millrace.delivery.domain.drains import DrainLease, WaitingTarget

Beating = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Calls a function every few seconds, beside what is done in the block, until the block is left."""


@dataclass(frozen=True, slots=True)
class LeaseTaken:
    """`other`: the drain that lives, if this one did not begin; else the one that died with the lease."""

    began: bool
    other: DrainLease | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """`mine`: the caller is to send a wake-up. If not, one is on its way, or `drain` lives and has to be asked."""

    mine: bool
    drain: DrainLease | None = None


class Drains(Protocol):
    """The leases of drains, one per target. A lease that has ended is nobody's, whoever held it."""

    def expect(self, tenant: str, target_id: str, now_ms: int) -> Expected:
        """Announce a wake-up of a target, unless one was announced lately or a drain lives. Whoever takes the lease
        takes the announcement away: what is noted before this call is seen by the drain that comes."""

    def take(self, drain: DrainLease, now_ms: int) -> LeaseTaken:
        """Begin this drain, unless another one of its target lives."""

    def renew(self, drain: DrainLease) -> bool:
        """Let the lease end at `until_ms`; False if it was given back or taken by another."""

    def ask(self, drain: DrainLease) -> bool:
        """Have whoever holds this lease look for more before it goes; False if it has gone."""

    def end(self, drain: DrainLease) -> bool:
        """Give the lease back. Returns whether somebody asked its holder to look for more."""

    def of(self, tenant: str) -> Sequence[DrainLease]:
        """A tenant's drains that have not given their lease back, by target; those that died are among them."""


class Line(Protocol):
    """Targets that wait for their tenant's turn. Nothing rests on it but when a target is served."""

    def wait(self, waiting: WaitingTarget) -> None:
        """Stand in line; who stands there already keeps its place, and is seen at this one's `since_ms`."""

    def leave(self, tenant: str, target_id: str) -> None:
        """Stand in line no more."""

    def waiting(self, tenant: str) -> Sequence[WaitingTarget]:
        """Who stands in a tenant's line."""


class Paces(Protocol):
    def pace(self, target_id: str, *, quick: bool) -> None:
        """Keep whether a target answers soon; everything else stays."""

    def hand_over(self, target_id: str, next_send_ms: int) -> None:
        """Keep when a target with a rate limit may be sent more, for the next drain; everything else stays."""
