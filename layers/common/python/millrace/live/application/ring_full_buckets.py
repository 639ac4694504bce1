"""Ring for full buckets: whoever moves a cursor over a bucket's end rings for the time index.

That index is made of full buckets, so a session that is shorter than one costs nothing. A ring that is lost is made
good by the next one, and until then readers read the log instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import TIMED, Ledger, bucket_of
from millrace.ledger.ports import Doorbell, Marks, State


@dataclass(frozen=True, slots=True)
class BucketState:
    """State, as the fan-out uses it."""

    state: State
    index: Doorbell

    def register(self, ledger: Ledger) -> None:
        self.state.register(ledger)

    def ledgers(self) -> Iterable[Ledger]:
        return self.state.ledgers()

    def marks(self, ledger: Ledger) -> Marks:
        return self.state.marks(ledger)

    def move_cursor(self, ledger: Ledger, consumer: str, expected: int, to: int, noted: int = 0) -> bool:
        moved = self.state.move_cursor(ledger, consumer, expected, to, noted)
        if moved and ledger.contract in TIMED and bucket_of(expected + 1) < bucket_of(to + 1):
            with suppress(Unavailable):
                self.index.ring([ledger])
        return moved

    def raise_floor(self, ledger: Ledger, to: int) -> None:
        self.state.raise_floor(ledger, to)
