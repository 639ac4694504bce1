"""Sends what is new in the ledgers that the log's stream or the wake queue names to subscribers, and wakes targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millrace.delivery import wiring as delivery_wiring
from millrace.live import wiring
from millrace.runtime import observe
from millrace.runtime.records import is_from_log, ledgers_of

RESERVE_MS = 90_000
"""Left for one more slice, to many connections; what remains is rung for again."""


def handler(event: Mapping[str, Any], context: Any) -> None:
    def may_go_on() -> bool:
        return bool(context.get_remaining_time_in_millis() > RESERVE_MS)

    def wake_targets(names: Sequence[str]) -> None:
        delivery_wiring.wake_targets()(names)

    ledgers = ledgers_of(event)
    failures = wiring.fan_out(may_go_on, wake_targets)(ledgers, grown=is_from_log(event))
    observe.logger().debug(
        "fanned_out", ledgers=len(ledgers), failed=len(failures.found), records=len(event["Records"])
    )
    observe.report(failures)  # if it raises, the records come again; no ledger waited for another
