"""Raise a cursor: move a consumer's cursor up to a page end, from wherever it stands, and never back."""

from __future__ import annotations

from millrace.ledger.domain.errors import Contention
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import State

TRIES = 20


def raise_cursor(state: State, ledger: Ledger, consumer: str, to: int) -> bool:
    """False if it stood there already, or further on."""
    for _ in range(TRIES):
        at = state.marks(ledger).cursors.get(consumer, 0)
        if at >= to:
            return False
        if state.move_cursor(ledger, consumer, at, to):
            return True
    raise Contention("Others keep moving this cursor; try again.", ledger=ledger.name, consumer=consumer)
