"""Rows of the journal's file as the domain's values, and back."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.domain.targets import Target, TargetState

DELIVERY = "d.status, d.attempts, d.first_ms, d.last_ms, d.next_ms, d.error"
TARGET = "id, kind, url, prefixes, start_at"
STATE = "failures, open_until_ms, paused_why, blocked, blocked_detail, blocked_ms"

UNKNOWN_TARGET = "unknown"
"""The kind of a target that came with a journal of another tool: its address is not known."""

Row = tuple[Any, ...]


def delivery(row: Row) -> Delivery | None:
    """From the columns `DELIVERY`; None where an outer join found nothing."""
    return None if row[0] is None else Delivery(Status(row[0]), *row[1:6])


def columns(one: Delivery) -> Row:
    return (one.status.value, one.attempts, one.first_ms, one.last_ms, one.next_ms, one.error)


def target(row: Row) -> Target:
    return Target(row[0], row[1], row[2], frozenset(json.loads(row[3])), row[4])


def state(row: Row) -> TargetState:
    return TargetState(Circuit(row[0], row[1]), *row[2:6])


def known_targets(connection: sqlite3.Connection) -> list[Target]:
    """All that were ever delivered to and not forgotten."""
    return [one for one in seen_targets(connection) if one.kind != UNKNOWN_TARGET]


def seen_targets(connection: sqlite3.Connection) -> list[Target]:
    """The known ones, and those that only another tool delivered to: nothing is sent there, nothing waits for them."""
    rows = connection.execute(f"SELECT {TARGET} FROM delivery_target WHERE forgotten_ms IS NULL ORDER BY added_ms, id")
    return [target(row) for row in rows]
