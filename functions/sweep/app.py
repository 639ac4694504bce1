"""Every few minutes: ring for each ledger that a consumer or a target has not read to the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.delivery import wiring
from millrace.ledger import wiring as core
from millrace.ledger.application.failures import Failures
from millrace.runtime import observe

RESERVE_MS = 30_000
"""Left for the ledgers that are looked at side by side; the next sweep goes on after them."""


def handler(event: Mapping[str, Any], context: Any) -> dict[str, int]:
    def may_go_on() -> bool:
        return bool(context.get_remaining_time_in_millis() > RESERVE_MS)

    failures = Failures()
    asleep = event.get("asleep")  # by hand, after an outage: look at more sleeping ledgers than usual
    swept = core.sweep(may_go_on, wiring.sweep_targets()(failures), asleep if isinstance(asleep, int) else None)(
        failures
    )
    observe.logger().info(
        "swept", rings=swept.rings, wakes=swept.others, ledgers=len(swept.seen), failed=len(failures.found)
    )
    observe.report(failures)
    return {"rings": swept.rings, "wakes": swept.others, "ledgers": len(swept.seen)}
