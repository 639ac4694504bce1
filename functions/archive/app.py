"""Archives what is new in the ledgers that the log's stream or the archive queue names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.lake import wiring
from millrace.ledger import wiring as core
from millrace.ledger.domain.metrics import Metric
from millrace.runtime import observe
from millrace.runtime.records import ledgers_of

RESERVE_MS = 90_000
"""Left for finishing one more object; ledgers there is no time for are rung for again."""


def handler(event: Mapping[str, Any], context: Any) -> None:
    def may_go_on() -> bool:
        return bool(context.get_remaining_time_in_millis() > RESERVE_MS)

    ledgers = ledgers_of(event)
    done = wiring.archive_events(may_go_on)(ledgers)
    if done.left:
        core.doorbell("ARCHIVE_QUEUE_URL").ring(done.left)
    if done.lost:
        observe.logger().error("pruned_before_archived", events=done.lost)
    observe.count(
        {
            Metric.EVENTS_ARCHIVED: done.events,
            Metric.ARCHIVE_OBJECTS: done.objects,
            Metric.EVENTS_PRUNED_UNARCHIVED: done.lost,
        }
    )
    observe.logger().info(
        "archived", ledgers=len(ledgers), objects=done.objects, events=done.events, left=len(done.left)
    )
