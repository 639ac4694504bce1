"""Raw sensitive values in DynamoDB: a table of their own, sealed per grant, with a time to live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.domain.names import join_key, split_key
from millrace.ledger.ports import Together
from millrace.streams.ports import RawEntry

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class DynamoRawValues:
    client: DynamoDBClient
    table: str
    together: Together

    def keep(self, grant_id: str, entries: Sequence[RawEntry], expires_ms: int) -> None:
        self.together([partial(self._keep_one, grant_id, entry, expires_ms) for entry in entries])

    def _keep_one(self, grant_id: str, entry: RawEntry, expires_ms: int) -> None:
        item: dict[str, Any] = {
            "p": {"S": grant_id},
            "s": {"S": join_key(entry.stream_id, f"{entry.position:020d}")},
            "e": {"S": entry.event_id},
            "d": {"B": entry.sealed},
            "ttl": {"N": str(expires_ms // 1000)},
        }
        applied(
            lambda: self.client.put_item(TableName=self.table, Item=item, ConditionExpression="attribute_not_exists(p)")
        )

    def page(self, grant_id: str, after: str, limit: int) -> tuple[Sequence[RawEntry], str | None]:
        asked: dict[str, Any] = {
            "KeyConditionExpression": "p = :p",
            "ExpressionAttributeValues": {":p": {"S": grant_id}},
        }
        if after:
            asked["KeyConditionExpression"] += " AND s > :after"
            asked["ExpressionAttributeValues"][":after"] = {"S": after}
        with translated():
            answer = self.client.query(TableName=self.table, ConsistentRead=True, Limit=limit, **asked)
        items = answer["Items"]
        more = bool(items) and "LastEvaluatedKey" in answer
        return [_entry(item) for item in items], items[-1]["s"]["S"] if more else None


def _entry(item: Any) -> RawEntry:
    stream_id, position = split_key(item["s"]["S"])
    return RawEntry(stream_id, item["e"]["S"], int(position), bytes(item["d"]["B"]))
