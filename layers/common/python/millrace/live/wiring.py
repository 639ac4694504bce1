"""Wiring of live delivery: connections, subscriptions and the wire to them, built on first use like the ledger."""

from __future__ import annotations

import os
from functools import cache, partial
from typing import TYPE_CHECKING

from millrace.ledger import wiring as core
from millrace.runtime import bearer, observe, settings
from millrace.runtime.settings import setting
from millrace.sync import wiring as sync_wiring

if TYPE_CHECKING:
    from collections.abc import Callable

    from millrace.ledger.adapters.threads import Threads
    from millrace.ledger.domain.access import Identity
    from millrace.live.adapters.crew import LambdaCrew
    from millrace.live.adapters.deadlines import SqsDeadlines
    from millrace.live.adapters.dynamodb.connections import DynamoConnections
    from millrace.live.adapters.dynamodb.shards import DynamoShards
    from millrace.live.adapters.dynamodb.subscriptions import DynamoSubscriptions
    from millrace.live.adapters.socket_wire import ApiGatewayWire
    from millrace.live.application.broadcast import Broadcast
    from millrace.live.application.call_crew import CallCrew
    from millrace.live.application.close_strangers import CloseStrangers
    from millrace.live.application.continue_snapshot import ContinueSnapshot
    from millrace.live.application.converse import Converse
    from millrace.live.application.fan_out import FanOut
    from millrace.live.application.ring_full_buckets import BucketState
    from millrace.live.application.send_snapshot import SendSnapshot
    from millrace.live.application.serve_shard import ServeShard
    from millrace.live.application.take_place import TakePlace
    from millrace.live.ports import DeliveryWakes


AGAIN_SECONDS = 5
"""A ledger whose fan-out failed is served again after so long."""


@cache
def connections() -> DynamoConnections:
    from millrace.live.adapters.dynamodb.connections import DynamoConnections

    return DynamoConnections(core.dynamodb(), setting("CONNECTIONS_TABLE"))


@cache
def subscriptions() -> DynamoSubscriptions:
    from millrace.live.adapters.dynamodb.subscriptions import DynamoSubscriptions

    return DynamoSubscriptions(
        core.dynamodb(), setting("CONNECTIONS_TABLE"), core.together(), core.now_ms, observe.unreadable
    )


@cache
def take_place() -> TakePlace:
    from millrace.live.adapters.dynamodb.places import DynamoPlaces
    from millrace.live.application.take_place import TakePlace

    places = DynamoPlaces(core.dynamodb(), setting("CONNECTIONS_TABLE"), core.now_ms)
    most_connections, most_subscriptions = settings.tenant_places()
    return TakePlace(places, most_connections, most_subscriptions)


@cache
def deadlines() -> SqsDeadlines:
    from millrace.live.adapters.deadlines import SqsDeadlines

    return SqsDeadlines(core.sqs(), setting("DEADLINE_QUEUE_URL"))


@cache
def close_strangers() -> CloseStrangers:
    from millrace.live.application.close_strangers import CloseStrangers

    return CloseStrangers(connections(), wire(), core.now_ms)


@cache
def wire() -> ApiGatewayWire:
    from millrace.live.adapters.socket_wire import ApiGatewayWire
    from millrace.runtime.clients import socket_client

    return ApiGatewayWire(socket_client())


@cache
def converse() -> Converse:
    from millrace.live.application.answer import Answers
    from millrace.live.application.converse import Converse
    from millrace.live.application.subscribe import Subscribe
    from millrace.live.application.take_turn import TakeTurn

    subscribe = Subscribe(send_snapshot(), core.heads())
    answers = Answers(
        _admit,
        sync_wiring.submit(),
        sync_wiring.sync(),
        subscribe,
        subscriptions(),
        wire(),
        core.now_ms,
        lambda: os.urandom(8).hex(),
        resume=_resume,
        place=take_place(),
    )
    take_turn = TakeTurn(connections(), core.now_ms, core.nap)
    return Converse(connections(), subscriptions(), wire(), answers, core.now_ms, take_turn, bearer.count_request)


@cache
def send_snapshot() -> SendSnapshot:
    from millrace.live.adapters.handovers import SqsHandovers
    from millrace.live.application.send_snapshot import SendSnapshot

    return SendSnapshot(
        log=core.log(),
        state=core.state(),
        subscriptions=subscriptions(),
        handovers=SqsHandovers(core.sqs(), setting("SNAPSHOT_QUEUE_URL")),
        together=core.together(),
        clock=core.now_ms,
    )


@cache
def continue_snapshot() -> ContinueSnapshot:
    from millrace.live.application.answer import post_event
    from millrace.live.application.continue_snapshot import ContinueSnapshot
    from millrace.live.domain import events as live_events

    return ContinueSnapshot(
        sender=send_snapshot(),
        connections=connections(),
        wire=wire(),
        send=partial(post_event, wire()),
        farewell=lambda to: live_events.expired(to.dialect, to.project),
        overtaken=lambda to, gone: live_events.overtaken(to, gone.lost, gone.left, core.now_ms(), gone.watermark),
        new_id=lambda: os.urandom(8).hex(),
    )


def _admit(token: str) -> Identity:
    identity = bearer.tokens().verify(token)
    bearer.count_request(identity.tenant)
    return identity


def _resume(tenant: str, runtime_id: str, stream_id: str, cursor: str) -> int:
    from millrace.streams import wiring as streams_wiring

    return streams_wiring.poll().resume(tenant, runtime_id, stream_id, cursor)


def broadcast(may_go_on: Callable[[], bool]) -> Broadcast:
    from millrace.live.application.broadcast import Broadcast
    from millrace.live.domain import events as live_events

    return Broadcast(
        core.log(),
        followed_state(),
        subscriptions(),
        connections(),
        wire(),
        core.together(),
        core.now_ms,
        live_events.Renderer(),
        lambda to: live_events.expired(to.dialect, to.project),
        may_go_on,
        call_crew=call_crew(),
    )


@cache
def followed_state() -> BucketState:
    """State, as those use it who move the fan-out's cursor."""
    from millrace.live.application.ring_full_buckets import BucketState

    return BucketState(core.noting_state(), core.doorbell())


@cache
def shards() -> DynamoShards:
    from millrace.live.adapters.dynamodb.shards import DynamoShards

    return DynamoShards(core.dynamodb(), setting("STATE_TABLE"), setting("CONNECTIONS_TABLE"), core.now_ms)


@cache
def crew() -> LambdaCrew:
    from millrace.live.adapters.crew import LambdaCrew
    from millrace.runtime.clients import lambda_client

    return LambdaCrew(lambda_client, setting("CROWD_FUNCTION"), core.together())


@cache
def call_crew() -> CallCrew:
    from millrace.live.application.call_crew import CallCrew

    return CallCrew(
        log=core.log(),
        state=followed_state(),
        shards=shards(),
        crew=crew(),
        clock=core.now_ms,
        per_shard=settings.connections_per_shard(),
    )


@cache
def serve_shard() -> ServeShard:
    from millrace.live.application.serve_shard import ServeShard
    from millrace.live.application.settle_shards import SettleShards

    return ServeShard(
        broadcast=broadcast(lambda: True),
        call_crew=call_crew(),
        shards=shards(),
        settle=SettleShards(followed_state(), shards(), core.now_ms, settings.connections_per_shard()),
        clock=core.now_ms,
        new_id=lambda: os.urandom(8).hex(),
    )


def fan_out(may_go_on: Callable[[], bool], wake_targets: DeliveryWakes) -> FanOut:
    """Delivery is another room: whoever calls brings the way to wake its targets."""
    from millrace.live.application.fan_out import FanOut

    return FanOut(
        index=core.patient_doorbell(),
        rest=core.doorbell("WAKE_QUEUE_URL"),
        later=core.doorbell("WAKE_QUEUE_URL", AGAIN_SECONDS),
        wake_targets=wake_targets,
        broadcast=broadcast(may_go_on),
        may_go_on=may_go_on,
        clock=core.now_ms,
        together=side_by_side(),
    )


@cache
def side_by_side() -> Threads:
    """For ledgers; each may still use the threads for single calls."""
    from millrace.ledger.adapters.threads import Threads
    from millrace.live.domain.turns import SIDE_BY_SIDE

    return Threads(SIDE_BY_SIDE, "side-by-side")
