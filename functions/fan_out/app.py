"""The log's stream and the wake queue, both doorbells: of a record only the name of its ledger is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millrace.delivery import wiring as delivery_wiring
from millrace.ledger import wiring as core
from millrace.ledger.adapters.dynamodb.keys import ledger_of
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import INDEXED, Ledger
from millrace.live import wiring as live_wiring
from millrace.runtime import observe

RESERVE_MS = 90_000
"""Left for one more slice, to many connections; what remains is rung for again."""


def handler(event: Mapping[str, Any], context: Any) -> None:
    def may_go_on() -> bool:
        return bool(context.get_remaining_time_in_millis() > RESERVE_MS)

    rung = {_ledger(record) for record in event["Records"]}
    ledgers = [Ledger.to_read(name) for name in sorted(rung)]
    failed: list[Unavailable] = []
    if any("dynamodb" in record for record in event["Records"]):
        core.doorbell().ring(ledger for ledger in ledgers if ledger.contract in INDEXED)
        failed = _wake_targets(ledgers)
    broadcast = live_wiring.broadcast(may_go_on)
    for ledger in ledgers:
        try:
            if not broadcast(ledger) and not may_go_on():
                core.doorbell("WAKE_QUEUE_URL").ring([ledger])
        except Unavailable as error:
            observe.logger().warning("fan_out_failed", ledger=ledger.name, reason=error.message)
            failed.append(error)
    observe.logger().info("fanned_out", ledgers=len(ledgers), failed=len(failed), records=len(event["Records"]))
    if failed:
        raise failed[0]  # the records come again; no ledger waited for another


def _wake_targets(ledgers: Sequence[Ledger]) -> list[Unavailable]:
    """Whether or not this works, those who listen are served."""
    try:
        delivery_wiring.wake_targets()([ledger.name for ledger in ledgers])
    except Unavailable as error:
        observe.logger().warning("wake_failed", reason=error.message)
        return [error]
    return []


def _ledger(record: Mapping[str, Any]) -> str:
    if "dynamodb" in record:
        return ledger_of(record["dynamodb"]["Keys"]["b"]["S"])
    return str(record["body"])
