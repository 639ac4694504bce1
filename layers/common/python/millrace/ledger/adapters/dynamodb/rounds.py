"""The lists of ledgers that sweeps go through: the registry in State, and notes of who has grown when, which expire.

A place is the number of a shard and the last name that was met there.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.adapters.dynamodb.state import SHARDS, registered_ledger, registry_key
from millrace.ledger.domain.names import Ledger, join_key
from millrace.ledger.domain.recency import KEPT_MS, end_of
from millrace.ledger.ports import Leg

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

NOTE_SHARDS = 4
GROWN, PLACES = "grown", "places"
"""Partitions of notes and of places begin so. Those of ledgers begin with a contract."""


@dataclass(frozen=True, slots=True)
class DynamoRounds:
    client: DynamoDBClient
    state: str
    """The table of the registry."""
    waiting: str
    """The table of the notes and the places."""

    def registered(self, place: str, limit: int) -> Leg:
        return self._stretch(self._registered, SHARDS, place, limit)

    def note(self, ledger: Ledger, window: int) -> None:
        expires = {"N": str((end_of(window) + KEPT_MS) // 1_000)}
        shard = zlib.crc32(ledger.name.encode()) % NOTE_SHARDS
        self._set(_note_key(window, shard), ledger.name, "SET z = :v", expires)

    def noted(self, window: int, place: str, limit: int) -> Leg:
        def query(shard: int, after: str, limit: int) -> tuple[list[Ledger], str]:
            found, last = self._query(self.waiting, ("l", "k"), _note_key(window, shard), _binary(after), limit)
            return [Ledger.to_read(item["k"]["B"].decode()) for item in found], last["k"]["B"].decode() if last else ""

        return self._stretch(query, NOTE_SHARDS, place, limit)

    def kept_place(self, lane: str) -> str:
        with translated():
            answer = self.client.query(
                TableName=self.waiting,
                ConsistentRead=True,
                KeyConditionExpression="l = :l AND k = :k",
                ExpressionAttributeValues={":l": {"S": PLACES}, ":k": _binary(lane)},
            )
        return next((item["v"]["S"] for item in answer["Items"] if "S" in item.get("v", {})), "")

    def keep_place(self, lane: str, place: str) -> None:
        self._set(PLACES, lane, "SET v = :v", {"S": place})

    def _registered(self, shard: int, after: str, limit: int) -> tuple[list[Ledger], str]:
        found, last = self._query(self.state, ("p", "s"), registry_key(shard), {"S": after}, limit)
        return [registered_ledger(item) for item in found], last["s"]["S"] if last else ""

    def _query(
        self, table: str, key: tuple[str, str], partition: str, after: dict[str, Any], limit: int
    ) -> tuple[list[Any], Any]:
        """Items of a partition after a sort key, and the last one's key if there are more."""
        hash_, range_ = key
        asked: dict[str, Any] = {"ExpressionAttributeValues": {":p": {"S": partition}}}
        if any(after.values()):
            asked["ExclusiveStartKey"] = {hash_: {"S": partition}, range_: after}
        with translated():
            answer = self.client.query(
                TableName=table, ConsistentRead=True, Limit=limit, KeyConditionExpression=f"{hash_} = :p", **asked
            )
        return answer["Items"], answer.get("LastEvaluatedKey")

    def _stretch(
        self, query: Callable[[int, str, int], tuple[list[Ledger], str]], shards: int, place: str, limit: int
    ) -> Leg:
        number, _, after = place.partition(":")
        shard, found = int(number) if number.isdigit() else 0, list[Ledger]()
        while shard < shards and len(found) < limit:
            more, after = query(shard, after, limit - len(found))
            found += more
            shard = shard if after else shard + 1
        return Leg(found, f"{shard}:{after}" if shard < shards else "")

    def _set(self, partition: str, sort: str, update: str, value: dict[str, str]) -> None:
        with translated():
            self.client.update_item(
                TableName=self.waiting,
                Key={"l": {"S": partition}, "k": _binary(sort)},
                UpdateExpression=update,
                ExpressionAttributeValues={":v": value},
            )


def _note_key(window: int, shard: int) -> str:
    return join_key(GROWN, str(window), str(shard))


def _binary(text: str) -> Any:
    return {"B": text.encode()}
