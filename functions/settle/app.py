"""Every minute: commit the events of marker changes whose process died before it could."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.ledger.application.failures import Failures
from millrace.runtime import observe
from millrace.streams import wiring

RESERVE_MS = 10_000
OLDER_THAN_MS = 60_000
"""Longer than any function that changes markers lives."""


def handler(_event: Mapping[str, Any], context: Any) -> dict[str, int]:
    settle = wiring.settle_markers(lambda: bool(context.get_remaining_time_in_millis() > RESERVE_MS))
    failures = Failures()
    settled = settle(OLDER_THAN_MS, failures)
    observe.logger().info("settled", settled=settled, failed=len(failures.found))
    observe.report(failures)
    return {"settled": settled}
