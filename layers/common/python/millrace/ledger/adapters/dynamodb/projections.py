"""Projections of ledgers in DynamoDB: what was folded out of the events up to a position."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Projection

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_PROJECTION_BYTES = 300_000


@dataclass(frozen=True, slots=True)
class DynamoProjections:
    client: DynamoDBClient
    table: str
    kind: str
    """What is projected: `transcript`, `status`."""

    def load(self, ledger: Ledger) -> Projection:
        with translated():
            answer = self.client.get_item(TableName=self.table, Key=self._key(ledger), ConsistentRead=True)
        item: Any = answer.get("Item")
        if not item:
            return Projection(0, {})
        return Projection(int(item["v"]["N"]), json.loads(zlib.decompress(item["d"]["B"])))

    def store(self, ledger: Ledger, projection: Projection, before: int) -> None:
        packed = zlib.compress(json.dumps(projection.state, separators=(",", ":")).encode(), 1)
        if len(packed) > MAX_PROJECTION_BYTES:
            return
        item: dict[str, Any] = {**self._key(ledger), "v": {"N": str(projection.through)}, "d": {"B": packed}}
        applied(
            lambda: self.client.put_item(
                TableName=self.table,
                Item=item,
                ConditionExpression="attribute_not_exists(p) OR v = :before",
                ExpressionAttributeValues={":before": {"N": str(before)}},
            )
        )

    def _key(self, ledger: Ledger) -> dict[str, Any]:
        return {"p": {"S": f"{self.kind}#{ledger.name}"}, "s": {"S": "projection"}}
