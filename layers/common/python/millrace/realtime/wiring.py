"""Wiring of the realtime contract, built on first use like the ledger."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from millrace.ledger import wiring as core
from millrace.runtime.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from millrace.realtime.adapters.dynamodb import DynamoRealtime
    from millrace.realtime.adapters.time_index import DynamoTimes
    from millrace.realtime.application.checkpoint import Checkpoint
    from millrace.realtime.application.count_events import RealtimeMetrics
    from millrace.realtime.application.index_times import IndexTimes
    from millrace.realtime.application.publish import Publish
    from millrace.realtime.application.read_session import ReadSession
    from millrace.realtime.application.replay import Replay
    from millrace.realtime.application.take_events import TakeEvents
    from millrace.realtime.application.transcripts import Transcripts


@cache
def realtime_state() -> DynamoRealtime:
    from millrace.realtime.adapters.dynamodb import DynamoRealtime

    return DynamoRealtime(core.dynamodb(), setting("STATE_TABLE"), core.together())


@cache
def publish() -> Publish:
    from millrace.realtime.application.publish import Publish

    return Publish(core.commit(), core.together())


@cache
def take_events() -> TakeEvents:
    from millrace.realtime.application.take_events import TakeEvents

    return TakeEvents(publish(), realtime_state())


@cache
def checkpoint() -> Checkpoint:
    from millrace.realtime.application.checkpoint import Checkpoint

    return Checkpoint(realtime_state())


@cache
def read_session() -> ReadSession:
    from millrace.realtime.application.read_session import ReadSession

    return ReadSession(core.log(), core.state(), core.heads(), core.together())


@cache
def time_index() -> DynamoTimes:
    from millrace.realtime.adapters.time_index import DynamoTimes

    return DynamoTimes(core.dynamodb(), setting("INDEX_TABLE"), core.together())


@cache
def replay() -> Replay:
    from millrace.realtime.application.order_in_time import OrderInTime
    from millrace.realtime.application.replay import Replay

    return Replay(read_session(), OrderInTime(read_session(), time_index()), realtime_state())


def index_times(may_go_on: Callable[[], bool]) -> IndexTimes:
    from millrace.realtime.application.index_times import IndexTimes

    return IndexTimes(core.log(), core.state(), time_index(), may_go_on)


@cache
def transcripts() -> Transcripts:
    from millrace.ledger.adapters.dynamodb.projections import DynamoProjections
    from millrace.realtime.application.fold_transcripts import FoldTranscripts
    from millrace.realtime.application.transcripts import Transcripts

    stored = DynamoProjections(core.dynamodb(), setting("STATE_TABLE"), "transcript", core.new_edition)
    return Transcripts(FoldTranscripts(read_session(), stored))


@cache
def realtime_metrics() -> RealtimeMetrics:
    from millrace.realtime.application.count_events import RealtimeMetrics

    return RealtimeMetrics(core.log(), realtime_state(), realtime_state(), core.together())
