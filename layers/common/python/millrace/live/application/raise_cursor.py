"""Raise the fan-out's cursor of a ledger: everything up to a position was sent to everyone who was to have it."""

from __future__ import annotations

from millrace.ledger.domain.consumers import FAN_OUT_CONSUMER
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import State


def raise_cursor(state: State, ledger: Ledger, to: int) -> int:
    """Where the cursor is then: there, or further on. It never goes down."""
    while True:
        cursor = state.marks(ledger).cursors.get(FAN_OUT_CONSUMER, 0)
        if cursor >= to:
            return cursor
        if state.move_cursor(ledger, FAN_OUT_CONSUMER, cursor, to):
            return to
