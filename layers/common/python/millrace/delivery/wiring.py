"""Wiring of delivery: targets, their ledger, receivers and wake-ups, built on first use like everything in `wiring`."""

from __future__ import annotations

import os
import random
import time
from functools import cache, partial
from typing import TYPE_CHECKING

from millrace.ledger import wiring as core
from millrace.runtime import observe, settings
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from millrace.delivery.adapters.dynamodb.agenda import DynamoAgenda
    from millrace.delivery.adapters.dynamodb.directory import DynamoDirectory, DynamoTargetStates
    from millrace.delivery.adapters.dynamodb.drains import DynamoDrains, DynamoLine
    from millrace.delivery.adapters.dynamodb.ledger import DynamoDeliveryLedger
    from millrace.delivery.adapters.dynamodb.listing import DynamoDeliveries
    from millrace.delivery.adapters.dynamodb.positions import DynamoPositions
    from millrace.delivery.adapters.dynamodb.runs import Runs
    from millrace.delivery.adapters.target_secrets import SealedSecrets
    from millrace.delivery.adapters.wakes import SqsWakes
    from millrace.delivery.application.deliver import Deliver
    from millrace.delivery.application.expect_drain import ExpectDrain
    from millrace.delivery.application.held_by_targets import HeldByTargets
    from millrace.delivery.application.hub_status import HubStatus
    from millrace.delivery.application.ingest import Ingest
    from millrace.delivery.application.inspect_deliveries import InspectDeliveries
    from millrace.delivery.application.lag import Lag, SweepTargets
    from millrace.delivery.application.manage_targets import ManageTargets
    from millrace.delivery.application.replay_range import ReplayRange
    from millrace.delivery.application.retry_many import RetryMany
    from millrace.delivery.application.wake_targets import RemindTargets, WakeTargets

REQUEST_SECONDS = 15
"""The longest that one exchange with a target may take."""
LATE_MS = 60_000


def new_id() -> str:
    return os.urandom(16).hex()


@cache
def ingest() -> Ingest:
    from millrace.delivery.application.ingest import Ingest

    return Ingest(core.commit())


@cache
def directory() -> DynamoDirectory:
    from millrace.delivery.adapters.dynamodb.directory import DynamoDirectory

    return DynamoDirectory(core.dynamodb(), setting("DELIVERY_TABLE"), observe.unreadable)


@cache
def states() -> DynamoTargetStates:
    from millrace.delivery.adapters.dynamodb.directory import DynamoTargetStates

    return DynamoTargetStates(directory())


@cache
def runs() -> Runs:
    from millrace.delivery.adapters.dynamodb.runs import Runs

    return Runs(core.dynamodb(), setting("DELIVERY_TABLE"), core.together())


@cache
def positions() -> DynamoPositions:
    from millrace.delivery.adapters.dynamodb.positions import DynamoPositions

    return DynamoPositions(runs(), core.state(), observe.unreadable)


@cache
def agenda() -> DynamoAgenda:
    from millrace.delivery.adapters.dynamodb.agenda import DynamoAgenda

    return DynamoAgenda(runs())


@cache
def drains() -> DynamoDrains:
    from millrace.delivery.adapters.dynamodb.drains import DynamoDrains

    return DynamoDrains(core.dynamodb(), setting("DELIVERY_TABLE"), observe.unreadable)


@cache
def line() -> DynamoLine:
    from millrace.delivery.adapters.dynamodb.drains import DynamoLine

    return DynamoLine(core.dynamodb(), setting("DELIVERY_TABLE"), observe.unreadable)


@cache
def secrets() -> SealedSecrets:
    from millrace.delivery.adapters.target_secrets import SealedSecrets
    from millrace.ledger.adapters.keyring import StagedKeys
    from millrace.runtime.clients import read_secret_stage

    return SealedSecrets(
        StagedKeys(lambda stage: read_secret_stage(setting("DELIVERY_SECRET_ARN"), stage), core.now_ms)
    )


@cache
def wakes() -> SqsWakes:
    from millrace.delivery.adapters.wakes import SqsWakes
    from millrace.runtime.clients import sqs_client

    return SqsWakes(sqs_client(), setting("DELIVER_QUEUE_URL"), setting("SLOW_QUEUE_URL", ""))


@cache
def lag() -> Lag:
    from millrace.delivery.application.lag import Lag

    return Lag(
        log=core.log(),
        state=core.state(),
        positions=positions(),
        together=core.together(),
        clock=core.now_ms,
    )


@cache
def targets() -> ManageTargets:
    from millrace.delivery.application.manage_targets import ManageTargets
    from millrace.delivery.receivers.registry import RECEIVERS

    return ManageTargets(
        directory=directory(),
        states=states(),
        secrets=secrets(),
        positions=positions(),
        wakes=wakes(),
        log=core.log(),
        state=core.state(),
        heads=core.heads(),
        together=core.together(),
        clock=core.now_ms,
        kinds=RECEIVERS,
        loopback=settings.loopback_targets(),
        most_targets=int(setting("TENANT_TARGETS", "100")),
    )


def ledger(
    rung: tuple[str, ...] = (),
    may_go_on: Callable[[], bool] = lambda: True,
    hears: Callable[[str], bool] = lambda _: True,
) -> DynamoDeliveryLedger:
    """Of one drain, or of one look."""
    from millrace.delivery.adapters.dynamodb.ledger import DynamoDeliveryLedger
    from millrace.delivery.application.gather import GatherEvents

    return DynamoDeliveryLedger(
        runs=runs(),
        positions=positions(),
        events=GatherEvents(core.log(), core.together()),
        clock=core.now_ms,
        may_go_on=may_go_on,
        rung=rung,
        hears=hears,
    )


def deliveries() -> DynamoDeliveries:
    """Of one request: what it has read is its own."""
    from millrace.delivery.adapters.dynamodb.listing import DynamoDeliveries
    from millrace.delivery.application.find_event import FindEvent
    from millrace.ledger.adapters.dynamodb.claims import DynamoClaims

    claims = DynamoClaims(core.dynamodb(), setting("CLAIMS_TABLE"), core.together())
    find_event = FindEvent(claims, core.log(), core.together(), positions())
    return DynamoDeliveries(ledger(), find_event, core.now_ms)


def inspect() -> InspectDeliveries:
    from millrace.delivery.application.inspect_deliveries import InspectDeliveries
    from millrace.delivery.application.retry_delivery import Retry

    found = deliveries()
    return InspectDeliveries(targets(), found, Retry(found, observe.Audit(), core.now_ms), wakes())


def retry_many() -> RetryMany:
    from millrace.delivery.adapters.dynamodb.bulk import DynamoManyDeliveries
    from millrace.delivery.application.retry_many import RetryMany

    return RetryMany(targets(), DynamoManyDeliveries(deliveries()), wakes(), core.now_ms)


def replay_range() -> ReplayRange:
    """Of one request: what it has read is its own."""
    from millrace.delivery.adapters.dynamodb.replay import DynamoReplays
    from millrace.delivery.application.replay_range import ReplayRange

    return ReplayRange(targets(), DynamoReplays(ledger()), wakes(), core.now_ms)


def status() -> HubStatus:
    from millrace.delivery.application.hub_status import HubStatus

    return HubStatus(
        targets=targets(),
        listing=deliveries(),
        positions=positions(),
        agenda=agenda(),
        drains=drains(),
        line=line(),
        log=core.log(),
        state=core.state(),
        heads=core.heads(),
        clock=core.now_ms,
    )


def wake_targets() -> WakeTargets:
    from millrace.delivery.application.wake_targets import WakeTargets

    return WakeTargets(directory(), expect_drain(), wakes(), core.together())


@cache
def expect_drain() -> ExpectDrain:
    from millrace.delivery.application.expect_drain import ExpectDrain

    return ExpectDrain(drains(), agenda(), core.now_ms)


def remind_targets(may_go_on: Callable[[], bool]) -> RemindTargets:
    from millrace.delivery.application.wake_targets import RemindTargets

    return RemindTargets(
        directory=directory(),
        agenda=agenda(),
        drains=drains(),
        wakes=wakes(),
        clock=core.now_ms,
        may_go_on=may_go_on,
    )


def sweep_targets(may_go_on: Callable[[], bool]) -> SweepTargets:
    from millrace.delivery.application.lag import SweepTargets

    return SweepTargets(
        lag=lag(),
        directory=directory(),
        expect=expect_drain(),
        wakes=wakes(),
        late_ms=LATE_MS,
        clock=core.now_ms,
        may_go_on=may_go_on,
    )


@cache
def held_by_targets() -> HeldByTargets:
    from millrace.delivery.application.held_by_targets import HeldByTargets

    return HeldByTargets(directory(), positions())


def deliver(has_time: Callable[[], bool]) -> Deliver:
    from millrace.delivery.adapters.beats import beating
    from millrace.delivery.adapters.hub_receivers import HubReceivers
    from millrace.delivery.application.deliver import Deliver
    from millrace.delivery.application.take_turns import TakeTurns
    from millrace.delivery.domain.drains import Shares
    from millrace.delivery.domain.retry import Schedule
    from millrace.delivery.receivers.forgiving import Forgiving
    from millrace.delivery.receivers.registry import RECEIVERS

    receivers = HubReceivers(
        kinds=RECEIVERS,
        secrets=secrets(),
        outbound=cache(partial(Forgiving, total_s=REQUEST_SECONDS)),
        clock=core.now_ms,
        loopback=settings.loopback_targets(),
    )
    shares = Shares(int(setting("TENANT_DRAINS", "10")), int(setting("TENANT_SLOW_DRAINS", "3")))
    return Deliver(
        directory=directory(),
        states=states(),
        agenda=agenda(),
        lag=lag(),
        drains=drains(),
        turns=TakeTurns(drains(), line(), wakes(), shares, core.now_ms),
        paces=states(),
        wakes=wakes(),
        ledger=ledger,
        receiver=receivers,
        beating=beating,
        clock=core.now_ms,
        random=random.SystemRandom().random,
        new_id=new_id,
        has_time=has_time,
        schedule=Schedule(),
        unreadable=observe.unreadable,
        wait=lambda wait_ms: time.sleep(wait_ms / 1000),
    )
