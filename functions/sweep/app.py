"""Every few minutes: ring for each ledger that a consumer has not read to the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.runtime import observe, wiring

RESERVE_MS = 20_000


def handler(_event: Mapping[str, Any], context: Any) -> dict[str, int]:
    rings = wiring.sweep(lambda: bool(context.get_remaining_time_in_millis() > RESERVE_MS))()
    observe.logger().info("swept", rings=rings)
    return {"rings": rings}
