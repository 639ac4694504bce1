"""Sweep: ring for every ledger that a consumer has not read to its end. Records of the stream may have been lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from millrace.ledger.application.failures import Failures
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Doorbell, Log, State, Together

SIDE_BY_SIDE = 64


@dataclass(frozen=True, slots=True)
class Watch:
    """A consumer, its doorbell, and how old its first unread page must be before it counts as behind."""

    consumer: str
    doorbell: Doorbell
    late_ms: int = 0
    contracts: frozenset[str] | None = None
    """Whose ledgers it reads; None: all."""


@dataclass(frozen=True, slots=True)
class Sweep:
    log: Log
    state: State
    watches: Sequence[Watch]
    together: Together
    clock: Callable[[], int]
    may_go_on: Callable[[], bool]

    def __call__(self, failures: Failures) -> int:
        """Returns how many rings there were. When time runs out, a later sweep starts elsewhere in the registry."""
        rings = 0
        for group in _groups(self.state.ledgers(), SIDE_BY_SIDE):
            behind = self.together([partial(self._behind, ledger, failures) for ledger in group])
            for number, watch in enumerate(self.watches):
                late = [ledger for ledger, watched in zip(group, behind, strict=True) if watched[number]]
                if late:
                    failures.around("ring", watch.consumer, partial(watch.doorbell.ring, late), None)
                rings += len(late)
            if not self.may_go_on():
                break
        return rings

    def _behind(self, ledger: Ledger, failures: Failures) -> list[bool]:
        """By watch. A ledger that cannot be looked at is nobody's hindrance."""
        unknown = [False] * len(self.watches)
        return failures.around("sweep", ledger.name, partial(self._look, ledger), unknown)

    def _look(self, ledger: Ledger) -> list[bool]:
        cursors = self.state.marks(ledger).cursors
        return [self._is_behind(ledger, watch, cursors.get(watch.consumer, 0)) for watch in self.watches]

    def _is_behind(self, ledger: Ledger, watch: Watch, cursor: int) -> bool:
        if watch.contracts is not None and ledger.contract not in watch.contracts:
            return False
        unread = self.log.read(ledger, cursor, 1).pages
        return bool(unread) and unread[0].time_ms <= self.clock() - watch.late_ms


def _groups(ledgers: Iterable[Ledger], size: int) -> Iterator[list[Ledger]]:
    rest = iter(ledgers)
    while group := list(islice(rest, size)):
        yield group
