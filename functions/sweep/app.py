"""Every few minutes: ring for each ledger that a consumer has not read to the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.runtime import observe, wiring


def handler(_event: Mapping[str, Any], _context: Any) -> dict[str, int]:
    behind = sum(sweep() for sweep in wiring.sweeps())
    observe.logger().info("swept", behind=behind)
    return {"behind": behind}
