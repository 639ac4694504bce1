"""Scans of whole tables, for operators: which ledgers the log has, and every claim. In segments, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.adapters.dynamodb.batch import get_all
from millrace.ledger.adapters.dynamodb.claims import DynamoClaims, claim_key
from millrace.ledger.adapters.dynamodb.keys import ledger_of
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Claimed
from millrace.operators.ports import Key, Scanned, StoredClaim

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class DynamoLogScan:
    """Every ledger has one page that starts at 1; storage sends the keys of those alone."""

    client: DynamoDBClient
    table: str

    def count(self) -> int:
        return _count(self.client, self.table)

    def scan(self, segment: int, segments: int, after: Key | None) -> Scanned[str]:
        asked = {"FilterExpression": "f = :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
        answer = _scan(self.client, self.table, "b, f", segment, segments, after, asked)
        found = [ledger_of(item["b"]["S"]) for item in answer["Items"]]
        return Scanned(found, answer["ScannedCount"], answer.get("LastEvaluatedKey"))


@dataclass(frozen=True, slots=True)
class DynamoClaimScan:
    claims: DynamoClaims

    def count(self) -> int:
        return _count(self.claims.client, self.claims.table)

    def scan(self, segment: int, segments: int, after: Key | None) -> Scanned[StoredClaim]:
        answer = _scan(self.claims.client, self.claims.table, "k, l, s", segment, segments, after, {})
        found = [StoredClaim(item["k"]["S"], item["l"]["S"], int(item["s"]["N"])) for item in answer["Items"]]
        return Scanned(found, answer["ScannedCount"], answer.get("LastEvaluatedKey"))

    def lower(self, claim: StoredClaim, seen: int) -> bool:
        return applied(
            lambda: self.claims.client.update_item(
                TableName=self.claims.table,
                Key={"k": {"S": claim.key}},
                UpdateExpression="SET s = :seen",
                ConditionExpression="s = :before",
                ExpressionAttributeValues={":seen": {"N": str(seen)}, ":before": {"N": str(claim.seen)}},
            )
        )

    def missing(self, ledger: Ledger, ids: Sequence[str]) -> Sequence[str]:
        """One that storage left out of its answer counts as missing: whoever creates it finds it there."""
        by_key = {claim_key(ledger, id_): id_ for id_ in ids}
        keys = [{"k": {"S": key}} for key in by_key]
        items = get_all(self.claims.client, self.claims.table, keys, self.claims.together, tries=6)
        there = {item["k"]["S"] for item in items}
        return [id_ for key, id_ in by_key.items() if key not in there]

    def create(self, ledger: Ledger, ids: Sequence[str], seen: int) -> Claimed:
        return self.claims.create(ledger, ids, seen)


def _scan(
    client: DynamoDBClient,
    table: str,
    columns: str,
    segment: int,
    segments: int,
    after: Key | None,
    asked: Mapping[str, Any],
) -> Any:
    start = {} if after is None else {"ExclusiveStartKey": dict(after)}
    with translated():
        return client.scan(
            TableName=table,
            ProjectionExpression=columns,
            Segment=segment,
            TotalSegments=segments,
            ConsistentRead=True,
            **asked,
            **start,  # type: ignore[arg-type]
        )


def _count(client: DynamoDBClient, table: str) -> int:
    with translated():
        return client.describe_table(TableName=table)["Table"].get("ItemCount", 0)
