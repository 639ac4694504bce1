"""Every minute: wake the targets for which a retry or an unfinished visit is due."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.runtime import delivery_wiring, observe

RESERVE_MS = 10_000


def handler(_event: Mapping[str, Any], context: Any) -> dict[str, int]:
    wakes = delivery_wiring.remind_targets(lambda: bool(context.get_remaining_time_in_millis() > RESERVE_MS))()
    observe.logger().info("reminded", wakes=wakes)
    return {"wakes": wakes}
