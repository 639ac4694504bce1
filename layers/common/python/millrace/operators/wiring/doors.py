"""Wiring of the doors for operators, whose tables the environment names; built on first use."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millrace.ledger import wiring as core
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from millrace.operators.adapters.registry import DynamoRegistry
    from millrace.operators.application.read_events import ReadEvents
    from millrace.operators.application.show_connections import ShowConnections
    from millrace.operators.application.show_degraded import ShowDegraded
    from millrace.operators.application.show_ledgers import ShowLedgers
    from millrace.operators.application.show_negotiations import ShowNegotiations
    from millrace.operators.application.show_overview import ShowOverview


def show_ledgers() -> ShowLedgers:
    from millrace.delivery import wiring as delivery
    from millrace.operators.application.known_targets import KnownTargets
    from millrace.operators.application.show_ledgers import ShowLedgers

    return ShowLedgers(
        registry=_registry(),
        log=core.log(),
        state=core.state(),
        heads=core.heads(),
        targets=KnownTargets(delivery.directory()),
        positions=delivery.positions(),
        together=core.together(),
        clock=core.now_ms,
    )


def show_connections() -> ShowConnections:
    from millrace.live.adapters.dynamodb.open_sockets import DynamoOpenSockets
    from millrace.operators.application.show_connections import ShowConnections

    sockets = DynamoOpenSockets(core.dynamodb(), setting("CONNECTIONS_TABLE"), core.now_ms)
    return ShowConnections(sockets, core.together())


def show_degraded() -> ShowDegraded:
    from millrace.operators.application.show_degraded import ShowDegraded
    from millrace.streams import wiring as streams

    return ShowDegraded(
        registry=_registry(),
        degraded=streams.runtimes(),
        log=core.log(),
        state=core.state(),
        heads=core.heads(),
        together=core.together(),
    )


def show_negotiations() -> ShowNegotiations:
    from millrace.operators.application.show_negotiations import ShowNegotiations
    from millrace.streams import wiring as streams

    return ShowNegotiations(streams.runtimes())


def show_overview() -> ShowOverview:
    from millrace.delivery import wiring as delivery
    from millrace.operators.application.known_targets import KnownTargets
    from millrace.operators.application.show_overview import ShowOverview
    from millrace.streams import wiring as streams

    deliveries = delivery.deliveries()
    deliveries.ledger.runs = replace(deliveries.ledger.runs, sweeps=False)
    return ShowOverview(
        ledgers=show_ledgers(),
        connections=show_connections(),
        targets=KnownTargets(delivery.directory()),
        listing=deliveries,
        degraded=streams.runtimes(),
        log=core.log(),
        together=core.together(),
        clock=core.now_ms,
    )


def _registry() -> DynamoRegistry:
    from millrace.operators.adapters.registry import DynamoRegistry

    return DynamoRegistry(core.dynamodb(), setting("STATE_TABLE"), core.together())


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
