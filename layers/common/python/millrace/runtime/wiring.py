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

    from millrace.adapters.dynamodb.index import DynamoIndex
    from millrace.adapters.dynamodb.log import DynamoLog
    from millrace.adapters.dynamodb.state import DynamoState
    from millrace.adapters.threads import Threads
    from millrace.adapters.tokens import Tokens
    from millrace.application.heads import Heads
    from millrace.application.index_partitions import IndexPartitions
    from millrace.application.submit import Submit
    from millrace.application.sweep import Sweep
    from millrace.application.sync import Sync
    from millrace.ports import Doorbell

CONSUMERS = ("index",)
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

    return Threads()


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
def submit() -> Submit:
    from millrace.adapters.dynamodb.claims import DynamoClaims
    from millrace.application.commit import Commit
    from millrace.application.submit import Submit

    claims = DynamoClaims(dynamodb(), setting("CLAIMS_TABLE"), together())
    commit = Commit(claims, log(), state(), heads(), together(), now_ms, lambda: os.urandom(12), pause)
    return Submit(commit, now_ms, settings.profiles())


@cache
def sync() -> Sync:
    from millrace.application.sync import Sync

    return Sync(log(), state(), partition_index(), heads(), together())


def index_partitions(may_go_on: Callable[[], bool]) -> IndexPartitions:
    from millrace.application.index_partitions import IndexPartitions

    return IndexPartitions(log(), state(), partition_index(), may_go_on)


@cache
def doorbell() -> Doorbell:
    from millrace.adapters.clients import sqs_client
    from millrace.adapters.doorbell import SqsDoorbell

    return SqsDoorbell(sqs_client(), setting("INDEX_QUEUE_URL"))


@cache
def sweep() -> Sweep:
    from millrace.application.sweep import Sweep

    return Sweep(log(), state(), doorbell(), CONSUMERS)
