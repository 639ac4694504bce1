"""The index queue: bring each ledger's index up to its head, by partitions or, of sessions, by time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

from millrace.ledger import wiring as core
from millrace.ledger.adapters.doorbell import rung_for
from millrace.ledger.domain.names import TIMED
from millrace.realtime import wiring as realtime_wiring
from millrace.runtime import observe
from millrace.sync import wiring

RESERVE_MS = 10_000
"""Left for finishing one more span when time runs out; the rest is rung for again."""


def handler(event: Mapping[str, Any], context: Any) -> Any:
    def may_go_on() -> bool:
        return bool(context.get_remaining_time_in_millis() > RESERVE_MS)

    def one(record: Mapping[str, Any]) -> None:
        ledger = rung_for(record["body"])
        index = (realtime_wiring.index_times if ledger.contract in TIMED else wiring.index_partitions)(may_go_on)
        done = index(ledger)
        if not done and not may_go_on():
            core.doorbell().ring([ledger])
        observe.logger().info("indexed", ledger=ledger.name, done=done)

    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(event=dict(event), record_handler=one, processor=processor, context=context)
