"""The archive's reservations in DynamoDB: one row per lane, replaced on condition of its version."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.lake.ports.lanes import Lane, Reservation
from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.domain.names import join_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class DynamoLanes:
    client: DynamoDBClient
    table: str

    def load(self, number: int) -> Lane:
        with translated():
            answer = self.client.get_item(TableName=self.table, Key=_key(number), ConsistentRead=True)
        item: Any = answer.get("Item")
        if not item:
            return Lane()
        return Lane(int(item["v"]["N"]), _unpacked(item["d"]["B"]) if "d" in item else None)

    def store(self, number: int, lane: Lane) -> bool:
        item: dict[str, Any] = {**_key(number), "v": {"N": str(lane.version)}}
        if lane.reservation is not None:
            item["d"] = {"B": _packed(lane.reservation)}
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(p)"}
        if lane.version > 1:
            condition["ConditionExpression"] = "v = :before"
            condition["ExpressionAttributeValues"] = {":before": {"N": str(lane.version - 1)}}
        return applied(lambda: self.client.put_item(TableName=self.table, Item=item, **condition))


def _key(number: int) -> dict[str, Any]:
    return {"p": {"S": join_key("archive", str(number))}, "s": {"S": "lane"}}


def _packed(reservation: Reservation) -> bytes:
    content = {"name": reservation.name, "spans": reservation.spans, "events": reservation.events}
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 6)


def _unpacked(data: bytes) -> Reservation:
    content = json.loads(zlib.decompress(data))
    spans = {ledger: (first, last) for ledger, (first, last) in content["spans"].items()}
    return Reservation(content["name"], spans, content["events"])
