"""What the usual designs would pay for the same events, on the same tables, in the same run."""

from __future__ import annotations

from itertools import count
from typing import Any

from millrace.ledger.domain.page import Draft
from tests.bench.events import drafts
from tests.bench.rig import Rig
from tests.bench.tally import Counts

TABLES = ("claims", "log", "state")
_SEEDS = count(500_000)


def transaction_per_event(rig: Rig, kind: str, events: int) -> Counts:
    """Counter, event and dedupe record in one TransactWriteItems."""
    ledger = rig.ledger().name
    with rig.tally.measured() as counts:
        for position, draft in enumerate(drafts(kind, events, next(_SEEDS)), 1):
            counter: Any = {
                "TableName": rig.tables.state,
                "Key": {"p": {"S": f"counter#{ledger}"}, "s": {"S": "position"}},
                "UpdateExpression": "SET v = :to",
                "ConditionExpression": "attribute_not_exists(v) OR v < :to",
                "ExpressionAttributeValues": {":to": {"N": str(position)}},
            }
            event: Any = {"TableName": rig.tables.log, "Item": _event(ledger, position, draft)}
            seen: Any = {
                "TableName": rig.tables.claims,
                "Item": {"k": {"S": f"{ledger}#{draft.id}"}, "s": {"N": str(position)}},
                "ConditionExpression": "attribute_not_exists(k)",
            }
            rig.tables.client.transact_write_items(TransactItems=[{"Update": counter}, {"Put": event}, {"Put": seen}])
    return counts


def put_per_event(rig: Rig, kind: str, events: int) -> Counts:
    """A plain PutItem: nothing is deduplicated, and nobody guards the order."""
    ledger = rig.ledger().name
    with rig.tally.measured() as counts:
        for position, draft in enumerate(drafts(kind, events, next(_SEEDS)), 1):
            rig.tables.client.put_item(TableName=rig.tables.log, Item=_event(ledger, position, draft))
    return counts


def _event(ledger: str, position: int, draft: Draft) -> Any:
    return {
        "b": {"S": f"{ledger}#0"},
        "f": {"N": str(position)},
        "i": {"S": draft.id},
        "p": {"S": draft.partitions[0]},
        "e": {"B": draft.body},
    }


def row(name: str, kind: str, events: int, counts: Counts) -> dict[str, Any]:
    return {
        "design": name,
        "payload": kind,
        "events": events,
        "write units per event": counts.write_units(*TABLES) / events,
        "calls per event": counts.calls_to("log") / events,
    }
