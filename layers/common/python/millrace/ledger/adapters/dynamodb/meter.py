"""What tenants have used of their rate, in DynamoDB: one row a tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import condition_failed, refusals, translated
from millrace.ledger.domain.errors import Contention, Unavailable
from millrace.ledger.domain.names import join_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TRIES = 4


@dataclass(frozen=True, slots=True)
class DynamoMeter:
    client: DynamoDBClient
    table: str

    def add(self, tenant: str, used_us: int, since_us: int, latest_us: int) -> int:
        """One write for a tenant below its rate, whose moment is earlier; two for one that has used it up."""
        for _ in range(TRIES):
            there = self._begin(tenant, since_us, since_us + used_us)
            if there is None:
                return since_us + used_us
            if there > latest_us - used_us:
                return latest_us
            moved = self._move(tenant, since_us, used_us, latest_us - used_us)
            if moved is not None:
                return moved
        raise Contention("What the tenant has used could not be counted.")

    def _begin(self, tenant: str, since_us: int, to_us: int) -> int | None:
        """None if the moment was earlier; else the one that is there."""
        with translated():
            try:
                self.client.update_item(
                    TableName=self.table,
                    Key=_key(tenant),
                    UpdateExpression="SET t = :to",
                    ConditionExpression="attribute_not_exists(t) OR t < :since",
                    ExpressionAttributeValues={":since": _number(since_us), ":to": _number(to_us)},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except refusals() as error:
                if not condition_failed(error):
                    raise
                return _moment(error.response.get("Item") or self._item(tenant))
        return None

    def _move(self, tenant: str, since_us: int, used_us: int, most_us: int) -> int | None:
        """None if the moment is not in reach any more."""
        values = {":since": _number(since_us), ":used": _number(used_us), ":most": _number(most_us)}
        with translated():
            try:
                answer: Any = self.client.update_item(
                    TableName=self.table,
                    Key=_key(tenant),
                    UpdateExpression="SET t = t + :used",
                    ConditionExpression="t BETWEEN :since AND :most",
                    ExpressionAttributeValues=values,
                    ReturnValues="UPDATED_NEW",
                )
            except refusals() as error:
                if not condition_failed(error):
                    raise
                return None
        return _moment(answer["Attributes"])

    def _item(self, tenant: str) -> Any:
        answer = self.client.get_item(TableName=self.table, Key=_key(tenant), ConsistentRead=True)
        return answer.get("Item", {})


def _key(tenant: str) -> dict[str, Any]:
    return {"p": {"S": join_key("rate", tenant)}, "s": {"S": "requests"}}


def _number(value: int) -> Any:
    return {"N": str(value)}


def _moment(item: Any) -> int:
    try:
        return int(item["t"]["N"])
    except (KeyError, ValueError) as error:
        raise Unavailable("What the tenant has used cannot be read.") from error
