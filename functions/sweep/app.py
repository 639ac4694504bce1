"""Every few minutes: ring for each ledger that a consumer or a target has not read to the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.delivery import wiring
from millrace.ledger import wiring as core
from millrace.ledger.application.failures import Failures
from millrace.runtime import observe

RESERVE_MS = 20_000
TARGETS_MS = 100_000
"""Left for the targets; the next sweep starts elsewhere."""


def handler(_event: Mapping[str, Any], context: Any) -> dict[str, int]:
    def has_left(reserve_ms: int) -> bool:
        return bool(context.get_remaining_time_in_millis() > reserve_ms)

    failures = Failures()
    rings = core.sweep(lambda: has_left(TARGETS_MS))(failures)
    wakes = wiring.sweep_targets(lambda: has_left(RESERVE_MS))(failures)
    observe.logger().info("swept", rings=rings, wakes=wakes, failed=len(failures.found))
    observe.report(failures)
    return {"rings": rings, "wakes": wakes}
