"""Wiring of delivery: targets, their ledger, receivers and wake-ups, built on first use like everything in `wiring`."""

from __future__ import annotations

import os
import random
from functools import cache
from typing import TYPE_CHECKING

from millrace.runtime import observe, settings, wiring
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from millrace.adapters.dynamodb.delivery.agenda import DynamoAgenda
    from millrace.adapters.dynamodb.delivery.directory import DynamoDirectory, DynamoTargetStates
    from millrace.adapters.dynamodb.delivery.ledger import DynamoDeliveryLedger
    from millrace.adapters.dynamodb.delivery.listing import DynamoDeliveries
    from millrace.adapters.dynamodb.delivery.positions import DynamoPositions
    from millrace.adapters.dynamodb.delivery.runs import Runs
    from millrace.adapters.target_secrets import SealedSecrets
    from millrace.adapters.wakes import SqsWakes
    from millrace.application.deliver import Deliver
    from millrace.application.held_by_targets import HeldByTargets
    from millrace.application.hub_status import HubStatus
    from millrace.application.ingest import Ingest
    from millrace.application.inspect_deliveries import InspectDeliveries
    from millrace.application.lag import Lag, SweepTargets
    from millrace.application.manage_targets import ManageTargets
    from millrace.application.wake_targets import RemindTargets, WakeTargets

REQUEST_SECONDS = 15
"""The longest that one exchange with a target may take."""
LATE_MS = 60_000


def new_id() -> str:
    return os.urandom(16).hex()


@cache
def ingest() -> Ingest:
    from millrace.application.ingest import Ingest

    return Ingest(wiring.commit())


@cache
def directory() -> DynamoDirectory:
    from millrace.adapters.dynamodb.delivery.directory import DynamoDirectory

    return DynamoDirectory(wiring.dynamodb(), setting("DELIVERY_TABLE"))


@cache
def states() -> DynamoTargetStates:
    from millrace.adapters.dynamodb.delivery.directory import DynamoTargetStates

    return DynamoTargetStates(directory())


@cache
def runs() -> Runs:
    from millrace.adapters.dynamodb.delivery.runs import Runs

    return Runs(wiring.dynamodb(), setting("DELIVERY_TABLE"), wiring.together())


@cache
def positions() -> DynamoPositions:
    from millrace.adapters.dynamodb.delivery.positions import DynamoPositions

    return DynamoPositions(runs(), wiring.state())


@cache
def agenda() -> DynamoAgenda:
    from millrace.adapters.dynamodb.delivery.agenda import DynamoAgenda

    return DynamoAgenda(runs())


@cache
def secrets() -> SealedSecrets:
    from millrace.adapters.clients import read_secret_stage
    from millrace.adapters.keyring import StagedKeys
    from millrace.adapters.target_secrets import SealedSecrets

    return SealedSecrets(
        StagedKeys(lambda stage: read_secret_stage(setting("DELIVERY_SECRET_ARN"), stage), wiring.now_ms)
    )


@cache
def wakes() -> SqsWakes:
    from millrace.adapters.clients import sqs_client
    from millrace.adapters.wakes import SqsWakes

    return SqsWakes(sqs_client(), setting("DELIVER_QUEUE_URL"), new_id)


@cache
def lag() -> Lag:
    from millrace.application.lag import Lag

    return Lag(wiring.log(), wiring.state(), positions(), wiring.together(), wiring.now_ms)


@cache
def targets() -> ManageTargets:
    from millrace.application.manage_targets import ManageTargets

    return ManageTargets(
        directory(),
        states(),
        secrets(),
        positions(),
        wakes(),
        wiring.log(),
        wiring.state(),
        wiring.heads(),
        wiring.together(),
        wiring.now_ms,
        settings.loopback_targets(),
    )


def ledger(
    rung: tuple[str, ...] = (),
    may_go_on: Callable[[], bool] = lambda: True,
    hears: Callable[[str], bool] = lambda _: True,
) -> DynamoDeliveryLedger:
    """Of one drain, or of one look."""
    from millrace.adapters.dynamodb.delivery.ledger import DynamoDeliveryLedger
    from millrace.application.gather import GatherEvents

    gather = GatherEvents(wiring.log(), wiring.together())
    return DynamoDeliveryLedger(runs(), positions(), gather, wiring.now_ms, may_go_on, rung, hears)


def deliveries() -> DynamoDeliveries:
    """Of one request: what it has read is its own."""
    from millrace.adapters.dynamodb.claims import DynamoClaims
    from millrace.adapters.dynamodb.delivery.listing import DynamoDeliveries
    from millrace.application.find_event import FindEvent

    claims = DynamoClaims(wiring.dynamodb(), setting("CLAIMS_TABLE"), wiring.together())
    find_event = FindEvent(claims, wiring.log(), wiring.together(), positions())
    return DynamoDeliveries(ledger(), find_event, wiring.now_ms)


def inspect() -> InspectDeliveries:
    from millrace.application.inspect_deliveries import InspectDeliveries
    from millrace.application.retry_delivery import Retry

    found = deliveries()
    return InspectDeliveries(targets(), found, Retry(found, observe.Audit(), wiring.now_ms), wakes())


def status() -> HubStatus:
    from millrace.application.hub_status import HubStatus

    return HubStatus(
        targets(),
        deliveries(),
        positions(),
        agenda(),
        wiring.log(),
        wiring.state(),
        wiring.heads(),
        wiring.now_ms,
    )


def wake_targets() -> WakeTargets:
    from millrace.application.wake_targets import WakeTargets

    return WakeTargets(directory(), wakes())


def remind_targets(may_go_on: Callable[[], bool]) -> RemindTargets:
    from millrace.application.wake_targets import RemindTargets

    return RemindTargets(directory(), agenda(), wakes(), wiring.now_ms, may_go_on)


def sweep_targets(may_go_on: Callable[[], bool]) -> SweepTargets:
    from millrace.application.lag import SweepTargets

    return SweepTargets(lag(), directory(), wakes(), LATE_MS, wiring.now_ms, may_go_on)


@cache
def held_by_targets() -> HeldByTargets:
    from millrace.application.held_by_targets import HeldByTargets

    return HeldByTargets(directory(), positions())


def deliver(may_go_on: Callable[[], bool], has_time: Callable[[], bool]) -> Deliver:
    from millrace.adapters.forgiving import Forgiving
    from millrace.adapters.hub_receivers import HubReceivers
    from millrace.application.deliver import Deliver
    from millrace.domain.delivery.addresses import Reach
    from millrace.domain.delivery.retry import Schedule

    loopback = settings.loopback_targets()
    receivers = HubReceivers(
        secrets(),
        Forgiving(Reach(loopback=loopback), total_s=REQUEST_SECONDS),
        Forgiving(Reach(public=False, loopback=loopback), total_s=REQUEST_SECONDS),
        wiring.now_ms,
        has_time,
    )
    return Deliver(
        directory(),
        states(),
        agenda(),
        lag(),
        wakes(),
        ledger,
        receivers,
        wiring.now_ms,
        random.SystemRandom().random,
        may_go_on,
        Schedule(),
    )
