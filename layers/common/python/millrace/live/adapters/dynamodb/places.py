"""Places of a tenant's connections and subscriptions, in DynamoDB: a small row each, in one partition per tenant.

What leads to a place is written before it: a connection's row names its tenant, and so does the row that lists a
subscription. So whoever removes those finds it, whatever died in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.domain.names import join_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LIFE_SECONDS = 3 * 3600
"""API Gateway ends a connection after two hours."""
ROW = "connection"


@dataclass(frozen=True, slots=True)
class DynamoPlaces:
    client: DynamoDBClient
    table: str
    clock: Callable[[], int]

    def of_connection(self, tenant: str, connection: str) -> int:
        is_open = applied(
            lambda: self.client.update_item(
                TableName=self.table,
                Key=connection_key(connection),
                UpdateExpression="SET t = :tenant",
                ConditionExpression="attribute_exists(p)",
                ExpressionAttributeValues={":tenant": {"S": tenant}},
            )
        )
        return self._take(place_of_connection(tenant, connection), "c#") if is_open else 0

    def leave(self, tenant: str, connection: str) -> None:
        with translated():
            self.client.delete_item(TableName=self.table, Key=place_of_connection(tenant, connection))

    def of_subscription(self, tenant: str, connection: str, id_: str) -> int:
        return self._take(place_of_subscription(tenant, connection, id_), "s#")

    def _take(self, key: dict[str, Any], kind: str) -> int:
        ttl = {"N": str(self.clock() // 1000 + LIFE_SECONDS)}
        with translated():
            self.client.put_item(TableName=self.table, Item={**key, "ttl": ttl})
        return self._count(key["p"], kind)

    def _count(self, partition: Any, kind: str) -> int:
        """One read unit for about fifty of them; those that DynamoDB has still to expire are left out."""
        now = {"N": str(self.clock() // 1000)}
        asked: dict[str, Any] = {
            "TableName": self.table,
            "ConsistentRead": True,
            "Select": "COUNT",
            "KeyConditionExpression": "p = :p AND begins_with(s, :kind)",
            "FilterExpression": "#ttl > :now",
            "ExpressionAttributeNames": {"#ttl": "ttl"},
            "ExpressionAttributeValues": {":p": partition, ":kind": {"S": kind}, ":now": now},
        }
        found = 0
        while True:
            with translated():
                answer = self.client.query(**asked)
            found += answer["Count"]
            if "LastEvaluatedKey" not in answer:
                return found
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def connection_key(connection: str) -> dict[str, Any]:
    return {"p": {"S": f"c#{connection}"}, "s": {"S": ROW}}


def place_of_connection(tenant: str, connection: str) -> dict[str, Any]:
    return {"p": {"S": f"t#{join_key(tenant)}"}, "s": {"S": f"c#{connection}"}}


def place_of_subscription(tenant: str, connection: str, id_: str) -> dict[str, Any]:
    return {"p": {"S": f"t#{join_key(tenant)}"}, "s": {"S": f"s#{connection}#{id_}"}}
