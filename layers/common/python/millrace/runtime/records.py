"""Records of the log's stream and of the doorbell queues: of each only the name of its ledger is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.ledger.adapters.doorbell import rung_for
from millrace.ledger.adapters.dynamodb.keys import ledger_of
from millrace.ledger.domain.names import Ledger
from millrace.runtime import observe


def ledgers_of(event: Mapping[str, Any]) -> list[Ledger]:
    """Each ledger once, whichever way and however often it was named.

    A record that cannot be read is logged and left out: it stops no other, and the sweep finds what it was to name.
    """
    named: set[Ledger] = set()
    for record in event["Records"]:
        try:
            named.add(_ledger(record))
        except (ValueError, KeyError) as error:
            observe.logger().error(
                "unreadable_record", cause=type(error).__name__, message_id=record.get("messageId", "")
            )
    return sorted(named, key=lambda ledger: ledger.name)


def is_from_log(event: Mapping[str, Any]) -> bool:
    """Whether the log itself rang: its ledgers have grown."""
    return any("dynamodb" in record for record in event["Records"])


def _ledger(record: Mapping[str, Any]) -> Ledger:
    if "dynamodb" in record:
        return Ledger.to_read(ledger_of(record["dynamodb"]["Keys"]["b"]["S"]))
    return rung_for(str(record["body"]))
