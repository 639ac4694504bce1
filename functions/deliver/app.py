"""The deliver queue: bring to a target what is due there. A message is one target's wake-up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from millrace.delivery import wiring
from millrace.delivery.adapters.wakes import wake_of
from millrace.delivery.application.deliver import Deliver
from millrace.ledger.application.failures import Failures
from millrace.ledger.domain.metrics import Metric
from millrace.runtime import observe

REQUEST_MS = 1_000 * (wiring.REQUEST_SECONDS + 10)
"""Left for one more request, and for writing down what came of it."""


def handler(event: Mapping[str, Any], context: Any) -> None:
    def has_time() -> bool:
        return bool(context.get_remaining_time_in_millis() > REQUEST_MS)

    deliver, failures = wiring.deliver(has_time), Failures()
    for record in event["Records"]:
        failures.around("deliver", str(record.get("messageId")), partial(_drain, deliver, record), None)
    observe.report(failures)


def _drain(deliver: Deliver, record: Mapping[str, Any]) -> None:
    wake = wake_of(record["body"])
    fields: dict[str, Any] = {"tenant": wake.tenant, "target": wake.target_id, "ledgers": len(wake.ledgers)}
    delivered = deliver(wake, partial(wiring.wakes().keep, wake, record["receiptHandle"]))
    if delivered.after_death:
        observe.logger().warning("drain_taken_over", **fields)
        observe.count({Metric.DRAINS_TAKEN_OVER: 1}, contract="delivery")
    if delivered.failed:
        # Given back, the message would come again every few seconds; what was asked for is noted, and the next
        # minute's reminder asks again.
        error = delivered.failed
        observe.logger().warning("drain_failed", **fields, reason=error.message, details=dict(error.details))
        observe.count({Metric.DRAINS_FAILED: 1}, contract="delivery")
        return
    drained = delivered.drained
    if drained is None:
        observe.logger().info("drain_skipped", **fields)
        return
    counts: dict[str, Any] = {status.value: count for status, count in drained.counts.items()}
    observe.logger().info(
        "drained", **fields, **counts, complete=drained.complete, blocked=drained.blocked, why=drained.detail
    )
    for status, count in counts.items():
        observe.count({Metric.DELIVERIES: count}, contract="delivery", status=status)
