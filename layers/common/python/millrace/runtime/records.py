"""Records of the log's stream and of the doorbell queues: of each only the name of its ledger is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.ledger.adapters.doorbell import rung_for
from millrace.ledger.adapters.dynamodb.keys import ledger_of
from millrace.ledger.domain.names import Ledger


def ledgers_of(event: Mapping[str, Any]) -> list[Ledger]:
    """Each ledger once, whichever way and however often it was named."""
    return sorted({_ledger(record) for record in event["Records"]}, key=lambda ledger: ledger.name)


def is_from_log(event: Mapping[str, Any]) -> bool:
    """Whether the log itself rang: its ledgers have grown."""
    return any("dynamodb" in record for record in event["Records"])


def _ledger(record: Mapping[str, Any]) -> Ledger:
    if "dynamodb" in record:
        return Ledger.to_read(ledger_of(record["dynamodb"]["Keys"]["b"]["S"]))
    return rung_for(str(record["body"]))
