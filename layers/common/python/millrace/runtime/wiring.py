"""Wiring: which adapter each use case gets in a function. Built on first use and kept for the next invocation."""

from __future__ import annotations

import os
import random
import time
from functools import cache
from typing import TYPE_CHECKING

from millrace.runtime import settings
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_dynamodb import DynamoDBClient

    from millrace.adapters.dynamodb.connections import DynamoConnections
    from millrace.adapters.dynamodb.index import DynamoIndex
    from millrace.adapters.dynamodb.log import DynamoLog
    from millrace.adapters.dynamodb.realtime import DynamoRealtime
    from millrace.adapters.dynamodb.state import DynamoState
    from millrace.adapters.dynamodb.subscriptions import DynamoSubscriptions
    from millrace.adapters.socket_wire import ApiGatewayWire
    from millrace.adapters.threads import Threads
    from millrace.adapters.tokens import Tokens
    from millrace.application.broadcast import Broadcast
    from millrace.application.commit import Commit
    from millrace.application.converse import Converse
    from millrace.application.heads import Heads
    from millrace.application.index_partitions import IndexPartitions
    from millrace.application.publish import Publish
    from millrace.application.realtime_metrics import RealtimeMetrics
    from millrace.application.replay import Replay
    from millrace.application.submit import Submit
    from millrace.application.sweep import Sweep
    from millrace.application.sync import Sync
    from millrace.application.transcripts import Transcripts
    from millrace.ports import Doorbell

LATE_MS = 30_000
"""What a fan-out has not sent by then, its doorbell was lost for."""
UNARCHIVED_MS = 300_000
"""The archive waits for a minute before it begins; what it has not put by then, its doorbell was lost for."""
SECRET_SECONDS = 300


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def pause(attempt: int) -> None:
    """Full jitter between tries. System randomness: a restored snapshot must not repeat itself."""
    time.sleep(random.SystemRandom().uniform(0, min(0.4, 0.01 * 2**attempt)))


@cache
def dynamodb() -> DynamoDBClient:
    from millrace.adapters.clients import dynamodb_client

    return dynamodb_client()


@cache
def together() -> Threads:
    from millrace.adapters.threads import Threads

    return Threads(int(setting("THREADS", "16")))


@cache
def heads() -> Heads:
    from millrace.application.heads import Heads

    return Heads(now_ms)


@cache
def log() -> DynamoLog:
    from millrace.adapters.dynamodb.log import DynamoLog

    return DynamoLog(dynamodb(), setting("LOG_TABLE"), together())


@cache
def state() -> DynamoState:
    from millrace.adapters.dynamodb.state import DynamoState

    return DynamoState(dynamodb(), setting("STATE_TABLE"))


@cache
def partition_index() -> DynamoIndex:
    from millrace.adapters.dynamodb.index import DynamoIndex

    return DynamoIndex(dynamodb(), setting("INDEX_TABLE"), together())


@cache
def tokens() -> Tokens:
    from millrace.adapters.tokens import Tokens

    return Tokens(setting("TOKEN_ISSUER"), setting("TOKEN_AUDIENCE"), _token_secret, setting("TOKEN_JWKS_URL", ""))


def _token_secret() -> str:
    from millrace.adapters.clients import read_secret

    return read_secret(setting("TOKEN_SECRET_ARN"), SECRET_SECONDS)


@cache
def commit() -> Commit:
    from millrace.adapters.dynamodb.claims import DynamoClaims
    from millrace.application.commit import Commit

    claims = DynamoClaims(dynamodb(), setting("CLAIMS_TABLE"), together())
    return Commit(claims, log(), state(), heads(), together(), now_ms, lambda: os.urandom(12), pause)


@cache
def submit() -> Submit:
    from millrace.application.submit import Submit

    return Submit(commit(), now_ms, settings.profiles())


@cache
def realtime_state() -> DynamoRealtime:
    from millrace.adapters.dynamodb.realtime import DynamoRealtime

    return DynamoRealtime(dynamodb(), setting("STATE_TABLE"), together())


@cache
def publish() -> Publish:
    from millrace.application.publish import Publish

    return Publish(commit(), together())


@cache
def replay() -> Replay:
    from millrace.application.replay import Replay

    return Replay(log(), state(), realtime_state(), heads(), together())


@cache
def transcripts() -> Transcripts:
    from millrace.adapters.dynamodb.projections import DynamoProjections
    from millrace.application.transcripts import Transcripts

    return Transcripts(replay(), DynamoProjections(dynamodb(), setting("STATE_TABLE"), "transcript"))


@cache
def realtime_metrics() -> RealtimeMetrics:
    from millrace.application.realtime_metrics import RealtimeMetrics

    return RealtimeMetrics(log(), realtime_state(), realtime_state(), together())


@cache
def sync() -> Sync:
    from millrace.application.sync import Sync

    return Sync(log(), state(), partition_index(), heads(), together())


def index_partitions(may_go_on: Callable[[], bool]) -> IndexPartitions:
    from millrace.application.index_partitions import IndexPartitions

    return IndexPartitions(log(), state(), partition_index(), may_go_on)


@cache
def doorbell(queue: str = "INDEX_QUEUE_URL") -> Doorbell:
    from millrace.adapters.clients import sqs_client
    from millrace.adapters.doorbell import SqsDoorbell

    return SqsDoorbell(sqs_client(), setting(queue))


def sweep(may_go_on: Callable[[], bool]) -> Sweep:
    """Watches the indexer, and the fan-out and the archive for what they should have done long ago."""
    from millrace.application.archive_events import ARCHIVE_CONSUMER
    from millrace.application.broadcast import FAN_OUT_CONSUMER
    from millrace.application.sweep import Sweep, Watch
    from millrace.application.sync import INDEX_CONSUMER
    from millrace.domain.ledger import INDEXED

    watches = (
        Watch(INDEX_CONSUMER, doorbell(), contracts=INDEXED),
        Watch(FAN_OUT_CONSUMER, doorbell("WAKE_QUEUE_URL"), LATE_MS),
        Watch(ARCHIVE_CONSUMER, doorbell("ARCHIVE_QUEUE_URL"), UNARCHIVED_MS),
    )
    return Sweep(log(), state(), watches, together(), now_ms, may_go_on)


@cache
def connections() -> DynamoConnections:
    from millrace.adapters.dynamodb.connections import DynamoConnections

    return DynamoConnections(dynamodb(), setting("CONNECTIONS_TABLE"))


@cache
def subscriptions() -> DynamoSubscriptions:
    from millrace.adapters.dynamodb.subscriptions import DynamoSubscriptions

    return DynamoSubscriptions(dynamodb(), setting("CONNECTIONS_TABLE"), together(), now_ms)


@cache
def wire() -> ApiGatewayWire:
    from millrace.adapters.clients import socket_client
    from millrace.adapters.socket_wire import ApiGatewayWire

    return ApiGatewayWire(socket_client(setting("SOCKET_API_ID"), setting("SOCKET_STAGE")))


@cache
def converse() -> Converse:
    from millrace.application.answer import Answers
    from millrace.application.converse import Converse
    from millrace.application.subscribe import Subscribe

    subscribe = Subscribe(log(), state(), subscriptions(), heads(), together(), now_ms)
    answers = Answers(
        lambda token: tokens().verify(token),
        submit(),
        sync(),
        subscribe,
        subscriptions(),
        wire(),
        now_ms,
        lambda: os.urandom(8).hex(),
        resume=_resume,
    )
    return Converse(connections(), subscriptions(), wire(), answers, now_ms, pause)


def _resume(tenant: str, runtime_id: str, stream_id: str, cursor: str) -> int:
    from millrace.runtime import stream_wiring

    return stream_wiring.poll().resume(tenant, runtime_id, stream_id, cursor)


def broadcast(may_go_on: Callable[[], bool]) -> Broadcast:
    from millrace.application.broadcast import Broadcast
    from millrace.domain import live_events

    return Broadcast(
        log(),
        state(),
        subscriptions(),
        connections(),
        wire(),
        together(),
        now_ms,
        live_events.Renderer(),
        lambda to: live_events.expired(to.dialect, to.project),
        may_go_on,
    )
