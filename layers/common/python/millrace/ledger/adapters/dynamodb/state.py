"""State in DynamoDB: the registry of ledgers, and per ledger its consumers' cursors and its floor."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.domain.names import Ledger, join_key
from millrace.ledger.ports import Marks, Together

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SHARDS = 16
FLOOR = "floor"
CURSOR = "cursor#"
NOTED = "w"
"""Beside a cursor: the window in which its consumer noted the ledger last."""
SHARDS_OF_AUDIENCE = "n"
"""Beside the fan-out's cursor; may be there before it."""


@dataclass(frozen=True, slots=True)
class DynamoState:
    client: DynamoDBClient
    table: str

    def register(self, ledger: Ledger) -> None:
        item = {
            "p": {"S": registry_key(shard_of(ledger.name))},
            "s": {"S": ledger.name},
            "d": {"S": ledger.dedupe_scope},
        }
        with translated():
            self.client.put_item(TableName=self.table, Item=item)

    def ledgers(self) -> Iterable[Ledger]:
        start = random.SystemRandom().randrange(SHARDS)
        for shard in range(start, start + SHARDS):
            for item in query_all(self.client, self.table, registry_key(shard % SHARDS)):
                yield registered_ledger(item)

    def marks(self, ledger: Ledger) -> Marks:
        cursors: dict[str, int] = {}
        floor = shards = 1
        noted = 0
        for item in query_all(self.client, self.table, ledger_key(ledger)):
            name = item["s"]["S"]
            shards = int(item[SHARDS_OF_AUDIENCE]["N"]) if SHARDS_OF_AUDIENCE in item else shards
            if "v" not in item:
                continue
            if name == FLOOR:
                floor = int(item["v"]["N"])
            elif name.startswith(CURSOR):
                cursors[name.removeprefix(CURSOR)] = int(item["v"]["N"])
                noted = max(noted, int(item[NOTED]["N"]) if NOTED in item else 0)
        return Marks(cursors, floor, noted, shards=shards)

    def move_cursor(self, ledger: Ledger, consumer: str, expected: int, to: int, noted: int = 0) -> bool:
        condition = "attribute_not_exists(v)" if expected == 0 else "v = :expected"
        values: dict[str, Any] = {":to": {"N": str(to)}}
        if expected:
            values[":expected"] = {"N": str(expected)}
        if noted:
            values[":noted"] = {"N": str(noted)}
        return self._set(ledger, CURSOR + consumer, condition, values, f", {NOTED} = :noted" if noted else "")

    def raise_floor(self, ledger: Ledger, to: int) -> None:
        self._set(ledger, FLOOR, "attribute_not_exists(v) OR v < :to", {":to": {"N": str(to)}})

    def _set(self, ledger: Ledger, name: str, condition: str, values: dict[str, Any], also: str = "") -> bool:
        return applied(
            lambda: self.client.update_item(
                TableName=self.table,
                Key={"p": {"S": ledger_key(ledger)}, "s": {"S": name}},
                UpdateExpression="SET v = :to" + also,
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
            )
        )


def query_all(
    client: DynamoDBClient, table: str, partition: str, prefix: str = "", since: str = "", through: str = ""
) -> Iterator[Any]:
    """Every item of a partition, those whose sort key starts with `prefix`, is at least `since`, or at most `through`;
    strongly consistent."""
    asked: dict[str, Any] = {
        "KeyConditionExpression": "p = :p",
        "ExpressionAttributeValues": {":p": {"S": partition}},
    }
    if prefix:
        asked["KeyConditionExpression"] += " AND begins_with(s, :s)"
        asked["ExpressionAttributeValues"][":s"] = {"S": prefix}
    if since:
        asked["KeyConditionExpression"] += " AND s BETWEEN :s AND :e" if through else " AND s >= :s"
        asked["ExpressionAttributeValues"][":s"] = {"S": since}
    elif through:
        asked["KeyConditionExpression"] += " AND s <= :e"
    if through:
        asked["ExpressionAttributeValues"][":e"] = {"S": through}
    while True:
        with translated():
            answer = client.query(TableName=table, ConsistentRead=True, **asked)
        yield from answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return
        asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def registered(client: DynamoDBClient, table: str, prefix: str, together: Together) -> list[str]:
    """The names of the registered ledgers that start with `prefix`; the cost follows what is found."""

    def shard(number: int) -> list[str]:
        return [item["s"]["S"] for item in query_all(client, table, registry_key(number), prefix)]

    return [name for names in together([partial(shard, number) for number in range(SHARDS)]) for name in names]


def registered_ledger(item: Any) -> Ledger:
    """Its name is all that consumers need: a row without the rest hides no ledger, and no neighbour of one."""
    scope = item.get("d")
    return Ledger(item["s"]["S"], scope["S"] if isinstance(scope, dict) and "S" in scope else "")


def shard_of(name: str) -> int:
    """In which shard of the registry a ledger is."""
    return zlib.crc32(name.encode()) % SHARDS


def registry_key(shard: int) -> str:
    return join_key("ledgers", str(shard))


def ledger_key(ledger: Ledger) -> str:
    return f"ledger#{ledger.name}"
