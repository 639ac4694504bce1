"""Profiles of projects in DynamoDB: a row per project, under its tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.domain.names import join_key
from millrace.sync.ports import ProfilePage

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class DynamoProfiles:
    client: DynamoDBClient
    table: str

    def get(self, tenant: str, project: str) -> str | None:
        """Half a read unit."""
        with translated():
            answer = self.client.query(
                TableName=self.table,
                KeyConditionExpression="p = :p AND s = :s",
                ExpressionAttributeValues={":p": {"S": _tenant(tenant)}, ":s": {"S": project}},
            )
        return next((item["v"]["S"] for item in answer["Items"] if "v" in item), None)

    def put(self, tenant: str, project: str, profile: str | None) -> None:
        asked: dict[str, Any] = {"UpdateExpression": "REMOVE v"}
        if profile is not None:
            asked = {"UpdateExpression": "SET v = :v", "ExpressionAttributeValues": {":v": {"S": profile}}}
        with translated():
            self.client.update_item(
                TableName=self.table, Key={"p": {"S": _tenant(tenant)}, "s": {"S": project}}, **asked
            )

    def page(self, tenant: str, after: str, limit: int) -> ProfilePage:
        key, values = "p = :p", {":p": {"S": _tenant(tenant)}}
        if after:
            key, values = f"{key} AND s > :after", {**values, ":after": {"S": after}}
        with translated():
            answer = self.client.query(
                TableName=self.table,
                KeyConditionExpression=key,
                ExpressionAttributeValues=values,
                ConsistentRead=True,
                Limit=limit,
            )
        last = answer.get("LastEvaluatedKey")
        found = {item["s"]["S"]: item["v"]["S"] for item in answer["Items"] if "v" in item}
        return ProfilePage(found, last["s"]["S"] if last else None)


def _tenant(tenant: str) -> str:
    return join_key("profiles", tenant)
