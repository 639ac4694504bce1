"""The rows of a journal that another tool kept: its events, and what became of each at each of its targets (D10)."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from datetime import datetime
from typing import Any

from millrace.delivery.domain.states import Delivery, Status
from millrace_client.journal.migration_ports import Queued

STATUSES = {
    "failed_transient": Status.TRANSIENT,
    "failed_permanent": Status.TERMINAL_FAILED,
    **{status.value: status for status in Status},
}
"""The words of that tool; one that is not among them says no more than that nobody knows."""

EVENTS = ("event_id", "event_type", "CAST(payload AS BLOB)")
DELIVERIES = ("event_id", "target_id", "status")
DETAILS = ("attempt_count", "first_attempted_at", "last_attempted_at", "last_error")
"""Of a delivery; those that are not there are not known."""


def read(connection: sqlite3.Connection) -> list[Queued]:
    """In the order they were captured in, inside the transaction that is open. What was archived there comes too."""
    columns = _columns(connection, "event_journal")
    if not columns:
        return []
    deliveries = _deliveries(connection)
    created = "created_at" if "created_at" in columns else "''"
    query = f"SELECT {', '.join(EVENTS)}, {created} FROM event_journal ORDER BY 4, event_id"
    return [
        Queued(
            str(event_id),
            str(event_type),
            payload if isinstance(payload, bytes) else b"",
            "" if created_at is None else str(created_at),
            sum(delivery.attempts for delivery in deliveries[event_id].values()),
            deliveries[event_id],
        )
        for event_id, event_type, payload, created_at in connection.execute(query)
    ]


def _deliveries(connection: sqlite3.Connection) -> defaultdict[str, dict[str, Delivery]]:
    found: defaultdict[str, dict[str, Delivery]] = defaultdict(dict)
    columns = _columns(connection, "delivery_ledger")
    if not columns.issuperset(DELIVERIES):
        return found
    there = [name if name in columns else "NULL" for name in DETAILS]
    query = f"SELECT {', '.join([*DELIVERIES, *there])} FROM delivery_ledger"
    for event_id, target, status, *details in connection.execute(query):
        found[event_id][str(target)] = _delivery(str(status), *details)
    return found


def _delivery(status: str, attempts: Any, first: Any, last: Any, error: Any) -> Delivery:
    known = STATUSES.get(status.strip().lower().replace("-", "_"), Status.TRANSIENT)
    count = attempts if isinstance(attempts, int) and attempts >= 0 else 1
    return Delivery(known, count, _ms(first), _ms(last), None, "" if error is None else str(error))


def _ms(text: Any) -> int:
    """0 where no time is known."""
    try:
        return int(datetime.fromisoformat(str(text)).timestamp() * 1000)
    except ValueError:
        return 0


def _columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
