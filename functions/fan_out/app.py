"""The log's stream: a doorbell. A record's only use is the name of the ledger that has something new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.adapters.dynamodb.keys import ledger_of
from millrace.domain.ledger import Ledger
from millrace.runtime import observe, wiring


def handler(event: Mapping[str, Any], _context: Any) -> None:
    names = {ledger_of(record["dynamodb"]["Keys"]["b"]["S"]) for record in event["Records"]}
    wiring.doorbell().ring(Ledger.to_read(name) for name in names)
    observe.logger().info("rang", ledgers=len(names), records=len(event["Records"]))
