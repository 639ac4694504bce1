"""Shards of crowds in DynamoDB: a row for each shard that was served, and their number beside the fan-out's cursor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, condition_failed, refusals, translated
from millrace.ledger.adapters.dynamodb.state import CURSOR, SHARDS_OF_AUDIENCE, ledger_key, query_all
from millrace.ledger.domain.consumers import FAN_OUT_CONSUMER
from millrace.ledger.domain.names import Ledger
from millrace.live.adapters.dynamodb.places import LIFE_SECONDS
from millrace.live.domain.shards import Shard
from millrace.live.ports import ShardProgress

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class DynamoShards:
    client: DynamoDBClient
    state: str
    """The table that has the cursors."""
    connections: str
    """The table whose rows end with the life of a connection: nobody is behind for longer."""
    clock: Callable[[], int]

    def split(self, ledger: Ledger, before: int, count: int) -> bool:
        known = f"{SHARDS_OF_AUDIENCE} IN (:before, :count)"
        if 1 in (before, count):
            known = f"attribute_not_exists({SHARDS_OF_AUDIENCE}) OR {known}"
        return applied(
            lambda: self.client.update_item(
                TableName=self.state,
                Key={"p": {"S": ledger_key(ledger)}, "s": {"S": CURSOR + FAN_OUT_CONSUMER}},
                UpdateExpression=f"SET {SHARDS_OF_AUDIENCE} = :count",
                ConditionExpression=known,
                ExpressionAttributeValues={":before": {"N": str(before)}, ":count": {"N": str(count)}},
            )
        )

    def progress(self, ledger: Ledger, count: int, first: int, last: int) -> Mapping[int, ShardProgress]:
        asked = {"since": _number(first), "through": _number(last)}
        items = query_all(self.client, self.connections, _crowd(ledger, count), **asked)
        return {int(item["s"]["S"]): _progress(item) for item in items}

    def take(self, ledger: Ledger, shard: Shard, holder: str, now_ms: int, until_ms: int) -> ShardProgress | None:
        with translated():
            try:
                row = self.client.update_item(
                    TableName=self.connections,
                    Key=_key(ledger, shard),
                    UpdateExpression="SET h = :me, u = :until, #ttl = :ttl",
                    ConditionExpression="attribute_not_exists(h) OR u <= :now OR h = :me",
                    ExpressionAttributeNames={"#ttl": "ttl"},
                    ExpressionAttributeValues={
                        ":me": {"S": holder},
                        ":now": {"N": str(now_ms)},
                        ":until": {"N": str(until_ms)},
                        ":ttl": self._ttl(),
                    },
                    ReturnValues="ALL_NEW",
                )
            except refusals() as error:
                if not condition_failed(error):
                    raise
                return None
        return _progress(row["Attributes"])

    def move(self, ledger: Ledger, shard: Shard, holder: str, progress: ShardProgress) -> bool:
        return applied(
            lambda: self.client.update_item(
                TableName=self.connections,
                Key=_key(ledger, shard),
                UpdateExpression="SET v = :through, u = :until, f = :found, #ttl = :ttl",
                ConditionExpression="h = :me",
                ExpressionAttributeNames={"#ttl": "ttl"},
                ExpressionAttributeValues={
                    ":me": {"S": holder},
                    ":through": {"N": str(progress.through)},
                    ":until": {"N": str(progress.until_ms)},
                    ":found": {"N": str(progress.found)},
                    ":ttl": self._ttl(),
                },
            )
        )

    def _ttl(self) -> Any:
        return {"N": str(self.clock() // 1000 + LIFE_SECONDS)}


def _progress(item: Any) -> ShardProgress:
    through, until, found = (int(item[name]["N"]) if name in item else 0 for name in ("v", "u", "f"))
    return ShardProgress(through, until, found)


def _crowd(ledger: Ledger, count: int) -> str:
    return f"crowd#{count}#{ledger.name}"


def _number(number: int) -> str:
    return f"{number:04d}"


def _key(ledger: Ledger, shard: Shard) -> dict[str, Any]:
    return {"p": {"S": _crowd(ledger, shard.count)}, "s": {"S": _number(shard.number)}}
