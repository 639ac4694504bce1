"""Retention's rules in DynamoDB: a row per scope and partition, its watermark moved on condition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.lake.domain.retention_rules import Change, Rule, Rules, Scope, check_after
from millrace.lake.ports.retention import PolicyPage
from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.adapters.dynamodb.state import query_all
from millrace.ledger.domain.names import join_key, split_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

COLUMNS = {"advance_to": "a", "max_age_days": "d", "max_events": "e"}


@dataclass(frozen=True, slots=True)
class DynamoPolicies:
    client: DynamoDBClient
    table: str

    def get(self, scope: Scope) -> Mapping[str, Rule]:
        prefix = join_key(scope.contract, scope.text, "")
        return {partition: rule for (_, partition), rule in self._rules(scope.tenant, prefix).items()}

    def change(self, scope: Scope, change: Change) -> bool:
        given = {name: getattr(change, name) for name in COLUMNS}
        values = {COLUMNS[name]: value for name, value in given.items() if value is not None}
        clauses = []
        if values:
            clauses.append("SET " + ", ".join(f"{column} = :{column}" for column in values))
        if change.removed:
            clauses.append("REMOVE " + ", ".join(COLUMNS[name] for name in sorted(change.removed)))
        asked: dict[str, Any] = {"UpdateExpression": " ".join(clauses)}
        if values:
            asked["ExpressionAttributeValues"] = {f":{column}": {"N": str(value)} for column, value in values.items()}
        if "a" in values:
            asked["ConditionExpression"] = "attribute_not_exists(a) OR a <= :a"
        key = {"p": {"S": _tenant(scope.tenant)}, "s": {"S": join_key(scope.contract, scope.text, change.partition)}}
        return applied(lambda: self.client.update_item(TableName=self.table, Key=key, **asked))

    def page(self, tenant: str, contract: str | None, after: str, limit: int) -> PolicyPage:
        prefix = "" if contract is None else join_key(contract, "")
        check_after(after, prefix)
        asked: dict[str, Any] = {
            "TableName": self.table,
            "ConsistentRead": True,
            "Limit": limit,
            "KeyConditionExpression": "p = :p AND begins_with(s, :prefix)" if prefix else "p = :p",
            "ExpressionAttributeValues": {":p": {"S": _tenant(tenant)}},
        }
        if prefix:
            asked["ExpressionAttributeValues"][":prefix"] = {"S": prefix}
        if after:
            asked["ExclusiveStartKey"] = {"p": {"S": _tenant(tenant)}, "s": {"S": after}}
        with translated():
            answer = self.client.query(**asked)
        rules = [(*_place(tenant, item), _rule(item)) for item in answer["Items"]]
        last = answer.get("LastEvaluatedKey")
        return PolicyPage(rules, last["s"]["S"] if last else None)

    def of_tenant(self, tenant: str) -> Rules:
        return self._rules(tenant, "")

    def _rules(self, tenant: str, prefix: str) -> dict[tuple[Scope, str], Rule]:
        found = {}
        for item in query_all(self.client, self.table, _tenant(tenant), prefix):
            found[_place(tenant, item)] = _rule(item)
        return found


def _tenant(tenant: str) -> str:
    return join_key("retention", tenant)


def _place(tenant: str, item: Any) -> tuple[Scope, str]:
    contract, text, partition = split_key(item["s"]["S"])
    return Scope(tenant, contract, text), partition


def _rule(item: Any) -> Rule:
    numbers = {name: int(item[column]["N"]) for name, column in COLUMNS.items() if column in item}
    return Rule(**numbers)
