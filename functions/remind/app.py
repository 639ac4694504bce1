"""Every minute: wake the targets for which a retry or an unfinished visit is due."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.delivery import wiring
from millrace.ledger.application.failures import Failures
from millrace.runtime import observe

RESERVE_MS = 10_000


def handler(_event: Mapping[str, Any], context: Any) -> dict[str, int]:
    failures = Failures()
    wakes = wiring.remind_targets(lambda: bool(context.get_remaining_time_in_millis() > RESERVE_MS))(failures)
    observe.logger().info("reminded", wakes=wakes, failed=len(failures.found))
    observe.report(failures)
    return {"wakes": wakes}
