"""Rows that announce their changes, and intents, in DynamoDB."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, condition_failed, refusals, translated
from millrace.ledger.adapters.dynamodb.readable import Tell, readable, reading
from millrace.ledger.adapters.dynamodb.state import query_all
from millrace.ledger.domain.errors import unheard
from millrace.ledger.domain.names import Ledger, join_key, split_key
from millrace.ledger.domain.page import Draft
from millrace.streams.ports import Announcement, Intent, VersionedRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

INTENT_SHARDS = 8


@dataclass(frozen=True, slots=True)
class DynamoRows:
    client: DynamoDBClient
    table: str
    tell: Tell = unheard

    def get(self, group: str, key: str) -> VersionedRow | None:
        with translated():
            answer = self.client.get_item(TableName=self.table, Key=_key(group, key), ConsistentRead=True)
        item = answer.get("Item")
        return None if item is None else _row(item)

    def put(self, group: str, key: str, row: VersionedRow) -> VersionedRow | None:
        condition = "attribute_not_exists(p)" if row.version == 1 else "v = :before"
        values = {} if row.version == 1 else {"ExpressionAttributeValues": {":before": {"N": str(row.version - 1)}}}
        with translated():
            try:
                self.client.put_item(
                    TableName=self.table,
                    Item={**_key(group, key), **_item(row)},
                    ConditionExpression=condition,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **values,  # type: ignore[arg-type]
                )
            except refusals() as error:
                if not condition_failed(error):
                    raise
                item: Any = error.response.get("Item")
                return _row(item) if item else VersionedRow(0, {}, "")
        return None

    def restore(self, group: str, key: str, row: VersionedRow) -> bool:
        return applied(
            lambda: self.client.put_item(
                TableName=self.table,
                Item={**_key(group, key), **_item(row)},
                ConditionExpression="attribute_not_exists(p) OR v < :version",
                ExpressionAttributeValues={":version": {"N": str(row.version)}},
            )
        )

    def settle(self, group: str, key: str, version: int) -> None:
        applied(
            lambda: self.client.update_item(
                TableName=self.table,
                Key=_key(group, key),
                UpdateExpression="REMOVE a",
                ConditionExpression="v = :version",
                ExpressionAttributeValues={":version": {"N": str(version)}},
            )
        )

    def page(self, group: str, after: str, limit: int) -> Sequence[tuple[str, VersionedRow]]:
        found: list[tuple[str, VersionedRow]] = []
        asked: dict[str, Any] = {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": {"S": group}}}
        if after:
            asked["KeyConditionExpression"] += " AND s > :after"
            asked["ExpressionAttributeValues"][":after"] = {"S": after}
        while len(found) < limit:
            with translated():
                answer = self.client.query(TableName=self.table, ConsistentRead=True, Limit=limit - len(found), **asked)
            found += [(item["s"]["S"], _row(item)) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                break
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        return found

    def leave(self, intent: Intent, now_ms: int) -> None:
        with translated():
            self.client.put_item(TableName=self.table, Item={**_intent_key(intent), "t": {"N": str(now_ms)}})

    def clear(self, intent: Intent) -> None:
        with translated():
            self.client.delete_item(TableName=self.table, Key=_intent_key(intent))

    def left_before(self, ms: int) -> Iterable[Intent]:
        for shard in range(INTENT_SHARDS):
            for left_ms, intent in readable(query_all(self.client, self.table, _shard(shard)), _left, self.tell):
                if left_ms < ms:
                    yield intent


def _left(item: Any) -> tuple[int, Intent]:
    with reading("intent", item["s"]["S"]):
        return int(item["t"]["N"]), Intent(*split_key(item["s"]["S"]))


def _key(group: str, key: str) -> dict[str, Any]:
    return {"p": {"S": group}, "s": {"S": key}}


def _shard(number: int) -> str:
    return join_key("intents", str(number))


def _intent_key(intent: Intent) -> dict[str, Any]:
    name = join_key(intent.group, intent.key, intent.nonce)
    return _key(_shard(zlib.crc32(name.encode()) % INTENT_SHARDS), name)


def _item(row: VersionedRow) -> dict[str, Any]:
    item: dict[str, Any] = {
        "v": {"N": str(row.version)},
        "n": {"S": row.nonce},
        "d": {"S": json.dumps(row.content, ensure_ascii=False, separators=(",", ":"))},
    }
    if row.trail:
        item["w"] = {"L": [{"S": nonce} for nonce in row.trail]}
    if row.pending is not None:
        announcement, draft = row.pending, row.pending.draft
        item["a"] = {
            "M": {
                "l": {"S": announcement.ledger.name},
                "c": {"S": announcement.client_id},
                "i": {"S": draft.id},
                "h": {"B": draft.digest},
                "b": {"B": draft.body},
            }
        }
    return item


def _row(item: Any) -> VersionedRow:
    pending = None
    if "a" in item:
        announcement = item["a"]["M"]
        ledger = Ledger(announcement["l"]["S"], announcement["l"]["S"])
        draft = Draft(announcement["i"]["S"], bytes(announcement["h"]["B"]), bytes(announcement["b"]["B"]))
        pending = Announcement(ledger, draft, announcement["c"]["S"])
    trail = tuple(nonce["S"] for nonce in item.get("w", {"L": []})["L"])
    return VersionedRow(int(item["v"]["N"]), json.loads(item["d"]["S"]), item["n"]["S"], pending, trail)
