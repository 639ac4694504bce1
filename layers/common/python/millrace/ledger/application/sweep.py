"""Sweep: ring for every ledger that a consumer has not read to its end. Records of the stream may have been lost.

A sweep goes through two lanes, and keeps its place in each for the next one:

- *asleep*: a fixed number of registered ledgers, in turn, so that each is reached whatever it is called;
- *grown*: every ledger that consumers noted, window by window. A window is left behind once each of its ledgers was
  looked at when it was over and nobody had a reason any more to be late in it.

docs/adr/0023-sweeps-by-recency.md has the reasons and the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from millrace.ledger.application.failures import Failures
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.recency import KEPT_MS, WINDOW_MS, end_of, window_of
from millrace.ledger.ports import Doorbell, Leg, Log, Rounds, State, Together

SIDE_BY_SIDE = 64
ASLEEP_A_SWEEP = 1_000
"""Registered ledgers that a sweep looks at, whether they have grown or not."""
ASLEEP, GROWN = "asleep", "grown"


@dataclass(frozen=True, slots=True)
class Watch:
    """A consumer, its doorbell, and how old its first unread page must be before it counts as behind."""

    consumer: str
    doorbell: Doorbell
    late_ms: int = 0
    contracts: frozenset[str] | None = None
    """Whose ledgers it reads; None: all."""


@dataclass(slots=True)
class Swept:
    """What a sweep did. `others`: what those found who looked at the same ledgers."""

    rings: int = 0
    others: int = 0
    seen: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Sweep:
    log: Log
    state: State
    rounds: Rounds
    watches: Sequence[Watch]
    together: Together
    clock: Callable[[], int]
    may_go_on: Callable[[], bool]
    also: Callable[[Sequence[Ledger]], int] = lambda _ledgers: 0
    """Looks at the same ledgers for others."""
    asleep: int = ASLEEP_A_SWEEP

    def __call__(self, failures: Failures) -> Swept:
        """When time runs out, the next sweep goes on from there."""
        swept = Swept()
        self._visit_sleepers(swept, failures)
        self._visit_grown(swept, failures)
        return swept

    def _visit_sleepers(self, swept: Swept, failures: Failures) -> None:
        begin = self.rounds.kept_place(ASLEEP)
        place, left = begin, self.asleep
        while left > 0 and self.may_go_on():
            stretch = self.rounds.registered(place, min(left, SIDE_BY_SIDE))
            self._visit(stretch.ledgers, swept, failures)
            left -= max(1, len(stretch.ledgers))
            place = stretch.place
            if not place:
                break  # the next sweep begins anew: a short registry is looked at once, not around and around
        if place != begin:
            self.rounds.keep_place(ASLEEP, place)

    def _visit_grown(self, swept: Swept, failures: Failures) -> None:
        """Window by window, the oldest first. A place inside a window is kept only of one that can be left behind."""
        now_ms = self.clock()
        newest, patience = window_of(now_ms), max((watch.late_ms for watch in self.watches), default=0)
        begin = self.rounds.kept_place(GROWN)
        oldest, place = _grown_place(begin, newest)
        for window in range(oldest, newest + 1):
            is_over = end_of(window) + patience <= now_ms
            for stretch in self._noted(window, place if window == oldest else ""):
                self._visit(stretch.ledgers, swept, failures)
                if window == oldest and is_over:
                    oldest, place = (window, stretch.place) if stretch.place else (window + 1, "")
                if not self.may_go_on():
                    break
            if not self.may_go_on():
                break
        if (kept := f"{oldest}|{place}") != begin:
            self.rounds.keep_place(GROWN, kept)

    def _noted(self, window: int, place: str) -> Iterator[Leg]:
        while True:
            stretch = self.rounds.noted(window, place, SIDE_BY_SIDE)
            yield stretch
            place = stretch.place
            if not place:
                return

    def _visit(self, ledgers: Sequence[Ledger], swept: Swept, failures: Failures) -> None:
        group = [ledger for ledger in ledgers if ledger.name not in swept.seen]
        if not group:
            return
        swept.seen.update(ledger.name for ledger in group)
        behind = self.together([partial(self._behind, ledger, failures) for ledger in group])
        for ledger, watched in zip(group, behind, strict=True):
            if any(watched):
                self._note_again(ledger, failures)
        for number, watch in enumerate(self.watches):
            late = [ledger for ledger, watched in zip(group, behind, strict=True) if watched[number]]
            if late:
                failures.around("ring", watch.consumer, partial(watch.doorbell.ring, late), None)
            swept.rings += len(late)
        swept.others += self.also(group)

    def _note_again(self, ledger: Ledger, failures: Failures) -> None:
        """Until it is read to its end, sweeps look at it soon: this ring may be lost too."""
        failures.around("note", ledger.name, partial(self.rounds.note, ledger, window_of(self.clock())), None)

    def _behind(self, ledger: Ledger, failures: Failures) -> list[bool]:
        """By watch. A ledger that cannot be looked at is nobody's hindrance."""
        unknown = [False] * len(self.watches)
        return failures.around("sweep", ledger.name, partial(self._look, ledger), unknown)

    def _look(self, ledger: Ledger) -> list[bool]:
        """At rest, all cursors stand at the head, and one look at the log is enough."""
        cursors = self.state.marks(ledger).cursors
        unread: dict[int, int | None] = {}
        return [self._is_behind(ledger, watch, cursors.get(watch.consumer, 0), unread) for watch in self.watches]

    def _is_behind(self, ledger: Ledger, watch: Watch, cursor: int, unread: dict[int, int | None]) -> bool:
        if watch.contracts is not None and ledger.contract not in watch.contracts:
            return False
        if cursor not in unread:
            pages = self.log.read(ledger, cursor, 1).pages
            unread[cursor] = pages[0].time_ms if pages else None
        since_ms = unread[cursor]
        return since_ms is not None and since_ms <= self.clock() - watch.late_ms


def _grown_place(kept: str, newest: int) -> tuple[int, str]:
    """The window and the place in it. A hub's first sweep begins with the last window but one."""
    window, _, place = kept.partition("|")
    if window.isdigit() and newest - KEPT_MS // WINDOW_MS <= int(window) <= newest:
        return int(window), place
    return newest - 1, ""
