"""Open connections of a tenant in DynamoDB, as an operator sees them: by their places, in order of their ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.adapters.dynamodb.state import query_all
from millrace.ledger.domain.errors import UnreadableRow
from millrace.live.adapters.dynamodb.connections import connection_of
from millrace.live.adapters.dynamodb.places import ROW, connection_key, place_of_connection
from millrace.live.adapters.dynamodb.subscriptions import listed_ledger
from millrace.live.ports import OpenSocket

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LAST = "~"
"""After every character of a connection's id."""


@dataclass(frozen=True, slots=True)
class DynamoOpenSockets:
    client: DynamoDBClient
    table: str
    clock: Callable[[], int]

    def page(self, tenant: str, after: str, limit: int) -> Sequence[str]:
        """Places that DynamoDB has still to expire are passed over."""
        place, now = place_of_connection(tenant, after), self.clock() // 1000
        asked: dict[str, Any] = {
            "KeyConditionExpression": "p = :p AND s BETWEEN :begin AND :end",
            "ExpressionAttributeValues": {
                ":p": place["p"],
                ":begin": {"S": place["s"]["S"] + "\x00" if after else place["s"]["S"]},
                ":end": place_of_connection(tenant, LAST)["s"],
            },
        }
        found: list[str] = []
        while True:
            with translated():
                answer = self.client.query(TableName=self.table, ConsistentRead=True, Limit=limit - len(found), **asked)
            found += [item["s"]["S"].removeprefix("c#") for item in answer["Items"] if int(item["ttl"]["N"]) > now]
            if len(found) >= limit or "LastEvaluatedKey" not in answer:
                return found
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def look(self, connection: str) -> OpenSocket | None:
        """One query has its row and what it subscribed to. A row that nobody can read is as good as none."""
        items = {
            item["s"]["S"]: item for item in query_all(self.client, self.table, connection_key(connection)["p"]["S"])
        }
        row = items.pop(ROW, None)
        try:
            known = None if row is None else connection_of(connection, row)
            if known is None or known.identity is None:
                return None
            listed = [(sort.removeprefix("sub#"), listed_ledger(items[sort])) for sort in sorted(items)]
        except UnreadableRow:
            return None
        return OpenSocket(known, [(id_, ledger) for id_, ledger in listed if ledger])
