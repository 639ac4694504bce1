"""The realtime contract's own state in DynamoDB: counters, checkpoints, sessions of a tenant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.adapters.dynamodb.state import registered
from millrace.ledger.domain.names import Ledger, join_key
from millrace.ledger.ports import Together
from millrace.realtime.ports import Watermark

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class DynamoRealtime:
    client: DynamoDBClient
    table: str
    together: Together

    def add(self, tenant: str, counts: Mapping[str, int]) -> None:
        present = {name: count for name, count in counts.items() if count}
        if not present:
            return
        with translated():
            self.client.update_item(
                TableName=self.table,
                Key=_key(join_key("counters", "realtime", tenant), "all"),
                UpdateExpression="ADD " + ", ".join(f"#{name} :{name}" for name in present),
                ExpressionAttributeNames={f"#{name}": name for name in present},
                ExpressionAttributeValues={f":{name}": {"N": str(count)} for name, count in present.items()},
            )

    def read(self, tenant: str) -> Mapping[str, int]:
        item = self._get(join_key("counters", "realtime", tenant), "all")
        return {name: int(value["N"]) for name, value in item.items() if "N" in value}

    def move(self, session: Ledger, consumer: str, to: Watermark) -> bool:
        """Forward by sequence where both know it, else by (instant, event id); the same place again is fine.

        A sequence once known is kept by a place without one: reading again from there repeats, and loses nothing.
        """
        values: dict[str, Any] = {":t": {"N": str(to.instant)}, ":e": {"S": to.event_id}, ":ts": {"S": to.ts}}
        update, by_time = "SET t = :t, e = :e, #ts = :ts", "(t < :t OR (t = :t AND e <= :e))"
        condition = f"attribute_not_exists(p) OR {by_time}"
        if to.sequence is not None:
            values[":q"] = {"N": str(to.sequence)}
            update += ", q = :q"
            condition = f"attribute_not_exists(p) OR q <= :q OR (attribute_not_exists(q) AND {by_time})"
        return applied(
            lambda: self.client.update_item(
                TableName=self.table,
                Key=_key(f"checkpoints#{session.name}", consumer),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeNames={"#ts": "ts"},
                ExpressionAttributeValues=values,
            )
        )

    def get(self, session: Ledger, consumer: str) -> Watermark | None:
        item = self._get(f"checkpoints#{session.name}", consumer)
        if not item:
            return None
        sequence = int(item["q"]["N"]) if "q" in item else None
        return Watermark(item["ts"]["S"], int(item["t"]["N"]), item["e"]["S"], sequence)

    def of_tenant(self, tenant: str) -> Iterable[Ledger]:
        prefix = join_key("realtime", tenant)
        return [Ledger(name, prefix) for name in registered(self.client, self.table, prefix + "#", self.together)]

    def _get(self, partition: str, sort: str) -> Any:
        with translated():
            answer = self.client.get_item(TableName=self.table, Key=_key(partition, sort), ConsistentRead=True)
        return answer.get("Item", {})


def _key(partition: str, sort: str) -> dict[str, Any]:
    return {"p": {"S": partition}, "s": {"S": sort}}
