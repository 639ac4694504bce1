"""Note growth: a consumer that moves its cursor notes, once in a window of time, that the ledger has grown.

Sweeps look at noted ledgers first. Two consumers hear of each page by themselves, so if one of them was not told of it,
the note of the other leads a sweep there. It costs nothing to commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.recency import window_of
from millrace.ledger.ports import Marks, Rounds, State

REMEMBERED = 4_096


@dataclass(frozen=True, slots=True)
class NotingState:
    """State, as a consumer uses it."""

    state: State
    rounds: Rounds
    clock: Callable[[], int]
    _noted: dict[str, int] = field(default_factory=dict)

    def register(self, ledger: Ledger) -> None:
        self.state.register(ledger)

    def ledgers(self) -> Iterable[Ledger]:
        return self.state.ledgers()

    def marks(self, ledger: Ledger) -> Marks:
        marks = self.state.marks(ledger)
        self._remember(ledger, marks.noted)
        return marks

    def move_cursor(self, ledger: Ledger, consumer: str, expected: int, to: int, noted: int = 0) -> bool:
        """The note comes first: whoever dies in between leaves a note too many, and never one too few."""
        window = window_of(self.clock())
        if self._noted.get(ledger.name, 0) < window:
            self.rounds.note(ledger, window)
            noted = window
        moved = self.state.move_cursor(ledger, consumer, expected, to, noted)
        if moved:
            self._remember(ledger, noted)
        return moved

    def raise_floor(self, ledger: Ledger, to: int) -> None:
        self.state.raise_floor(ledger, to)

    def _remember(self, ledger: Ledger, window: int) -> None:
        if len(self._noted) >= REMEMBERED:
            self._noted.clear()
        self._noted[ledger.name] = max(window, self._noted.get(ledger.name, 0))
