"""Wiring of the ledger: which adapter each part of the core gets. Built on first use, kept for the next invocation."""

from __future__ import annotations

import os
import random
import time
from functools import cache
from typing import TYPE_CHECKING

from millrace.runtime import observe
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

    from millrace.ledger.adapters.dynamodb.log import DynamoLog
    from millrace.ledger.adapters.dynamodb.rounds import DynamoRounds
    from millrace.ledger.adapters.dynamodb.state import DynamoState
    from millrace.ledger.adapters.threads import Threads
    from millrace.ledger.application.audit import AuditLedger
    from millrace.ledger.application.audited import Audited
    from millrace.ledger.application.commit import Commit
    from millrace.ledger.application.heads import Heads
    from millrace.ledger.application.note_growth import NotingState
    from millrace.ledger.application.ring_patiently import PatientDoorbell
    from millrace.ledger.application.sweep import Sweep
    from millrace.ledger.application.wait_in_line import WaitInLine
    from millrace.ledger.domain.names import Ledger
    from millrace.ledger.ports import Doorbell

LATE_MS = 30_000
"""What a fan-out has not sent by then, its doorbell was lost for."""
UNARCHIVED_MS = 300_000
"""The archive waits for a minute before it begins; what it has not put by then, its doorbell was lost for."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def pause(attempt: int) -> None:
    """Full jitter between tries. System randomness: a restored snapshot must not repeat itself."""
    time.sleep(random.SystemRandom().uniform(0, min(0.4, 0.01 * 2**attempt)))


def nap(ms: int) -> None:
    """About so long: writers that wait for one ledger must not all look at once."""
    time.sleep(random.SystemRandom().uniform(0.6, 1.4) * ms / 1000)


def nonce() -> bytes:
    return os.urandom(12)


def new_id() -> str:
    return os.urandom(16).hex()


def new_edition() -> str:
    """Names a stored projection."""
    return os.urandom(12).hex()


@cache
def dynamodb() -> DynamoDBClient:
    from millrace.runtime.clients import dynamodb_client

    return dynamodb_client()


@cache
def together() -> Threads:
    from millrace.ledger.adapters.threads import Threads

    return Threads(int(setting("THREADS", "16")))


@cache
def heads() -> Heads:
    from millrace.ledger.application.heads import Heads

    return Heads(now_ms)


@cache
def log() -> DynamoLog:
    from millrace.ledger.adapters.dynamodb.log import DynamoLog

    return DynamoLog(dynamodb(), setting("LOG_TABLE"), together())


@cache
def state() -> DynamoState:
    from millrace.ledger.adapters.dynamodb.state import DynamoState

    return DynamoState(dynamodb(), setting("STATE_TABLE"))


@cache
def rounds() -> DynamoRounds:
    from millrace.ledger.adapters.dynamodb.rounds import DynamoRounds

    return DynamoRounds(dynamodb(), setting("STATE_TABLE"), setting("WAITING_TABLE"))


@cache
def noting_state() -> NotingState:
    """State for consumers: whoever moves a cursor notes that the ledger has grown."""
    from millrace.ledger.application.note_growth import NotingState

    return NotingState(state(), rounds(), now_ms)


@cache
def line() -> WaitInLine:
    """Where writers of a busy ledger wait."""
    from millrace.ledger.adapters.dynamodb.room import DynamoBoard, DynamoRoom
    from millrace.ledger.application.lead import Lead
    from millrace.ledger.application.wait_in_line import WaitInLine

    room = DynamoRoom(dynamodb(), setting("WAITING_TABLE"), together(), observe.unreadable)
    board = DynamoBoard(dynamodb(), setting("WAITING_TABLE"))
    lead = Lead(
        room=room,
        board=board,
        log=log(),
        state=state(),
        together=together(),
        clock=now_ms,
        nonce=nonce,
        tell=observe.tell,
    )
    return WaitInLine(
        room=room, board=board, lead=lead, log=log(), heads=heads(), clock=now_ms, nap=nap, tell=observe.tell
    )


@cache
def commit() -> Commit:
    from millrace.ledger.adapters.dynamodb.claims import DynamoClaims
    from millrace.ledger.application.commit import Commit

    claims = DynamoClaims(dynamodb(), setting("CLAIMS_TABLE"), together())
    return Commit(
        claims=claims,
        log=log(),
        state=state(),
        heads=heads(),
        together=together(),
        clock=now_ms,
        nonce=nonce,
        pause=pause,
        tell=observe.tell,
        line=line(),
    )


@cache
def audit() -> AuditLedger:
    from millrace.ledger.application.audit import AuditLedger

    return AuditLedger(commit(), log(), state(), heads(), together(), now_ms, new_id)


@cache
def audited() -> Audited:
    from millrace.ledger.application.audited import Audited

    return Audited(audit())


@cache
def sqs() -> SQSClient:
    from millrace.runtime.clients import sqs_client

    return sqs_client()


@cache
def doorbell(queue: str = "INDEX_QUEUE_URL", delay_s: int = 0) -> Doorbell:
    from millrace.ledger.adapters.doorbell import SqsDoorbell

    return SqsDoorbell(sqs(), setting(queue), delay_s)


def index_delay_ms() -> int:
    return 1_000 * int(setting("INDEX_DELAY", "0"))


@cache
def patient_doorbell() -> PatientDoorbell:
    """For the index: a sync reads what it does not have yet from the log."""
    from millrace.ledger.adapters.doorbell import SqsDoorbell
    from millrace.ledger.application.ring_patiently import PatientDoorbell

    later = SqsDoorbell(sqs(), setting("INDEX_QUEUE_URL"), index_delay_ms() // 1_000)
    return PatientDoorbell(later=later, at_once=doorbell(), delay_ms=index_delay_ms(), clock=now_ms)


def sweep(may_go_on: Callable[[], bool], also: Callable[[Sequence[Ledger]], int], asleep: int | None = None) -> Sweep:
    """Watches the indexer, and the fan-out and the archive for what they should have done long ago."""
    from millrace.ledger.application.sweep import ASLEEP_A_SWEEP, Sweep, Watch
    from millrace.ledger.domain.consumers import ARCHIVE_CONSUMER, FAN_OUT_CONSUMER, INDEX_CONSUMER
    from millrace.ledger.domain.names import INDEXED

    watches = (
        Watch(INDEX_CONSUMER, doorbell(), 2 * index_delay_ms(), contracts=INDEXED),
        Watch(FAN_OUT_CONSUMER, doorbell("WAKE_QUEUE_URL"), LATE_MS),
        Watch(ARCHIVE_CONSUMER, doorbell("ARCHIVE_QUEUE_URL"), UNARCHIVED_MS),
    )
    return Sweep(
        log=log(),
        state=state(),
        rounds=rounds(),
        watches=watches,
        together=together(),
        clock=now_ms,
        may_go_on=may_go_on,
        also=also,
        asleep=ASLEEP_A_SWEEP if asleep is None else asleep,
    )
