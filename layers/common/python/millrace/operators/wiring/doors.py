"""Wiring of the doors for operators, whose tables the environment names; built on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millrace.ledger import wiring as core
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from millrace.operators.application.read_events import ReadEvents
    from millrace.operators.application.show_ledgers import ShowLedgers


def show_ledgers() -> ShowLedgers:
    from millrace.delivery import wiring as delivery
    from millrace.operators.adapters.registry import DynamoRegistry
    from millrace.operators.application.known_targets import KnownTargets
    from millrace.operators.application.show_ledgers import ShowLedgers

    return ShowLedgers(
        registry=DynamoRegistry(core.dynamodb(), setting("STATE_TABLE"), core.together()),
        log=core.log(),
        state=core.state(),
        heads=core.heads(),
        targets=KnownTargets(delivery.directory()),
        positions=delivery.positions(),
        together=core.together(),
        clock=core.now_ms,
    )


def read_events() -> ReadEvents:
    """Of one request: what it has read of deliveries is its own."""
    from millrace.delivery import wiring as delivery
    from millrace.operators.application.known_targets import KnownTargets
    from millrace.operators.application.read_events import ReadEvents

    deliveries = delivery.deliveries()
    return ReadEvents(
        log=core.log(),
        state=core.state(),
        heads=core.heads(),
        together=core.together(),
        find_event=deliveries.find_event,
        targets=KnownTargets(delivery.directory()),
        positions=delivery.positions(),
        listing=deliveries,
    )
