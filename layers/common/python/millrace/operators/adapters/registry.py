"""The registry of ledgers in order of names. It is kept in shards; each is read as far as it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.adapters.dynamodb.state import SHARDS, registry_key, shard_of
from millrace.ledger.adapters.memory import MemoryState
from millrace.ledger.ports import Together

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class MemoryRegistry:
    state: MemoryState

    def page(self, first: str, last: str, limit: int) -> Sequence[str]:
        names = (ledger.name for ledger in self.state.ledgers())
        return sorted(name for name in names if first <= name <= last)[:limit]


@dataclass(frozen=True, slots=True)
class DynamoRegistry:
    client: DynamoDBClient
    table: str
    together: Together

    def page(self, first: str, last: str, limit: int) -> Sequence[str]:
        """Names are spread evenly: of each shard about its part is read, and more of those that turn out to be behind.

        A name is known to be in order when no shard can have a lower one that was not read.
        """
        at_once = max(2, limit // 8)
        shards = [shard_of(first)] if first == last else list(range(SHARDS))
        read_to = dict.fromkeys(shards, first)
        names: list[str] = []
        while True:
            calls = [partial(self._read, shard, since, last, at_once) for shard, since in read_to.items()]
            for shard, (found, more) in zip(list(read_to), self.together(calls), strict=True):
                names += found
                if more:
                    read_to[shard] = found[-1] + "\x00"
                else:
                    del read_to[shard]
            names.sort()
            needed = names[limit - 1] if len(names) >= limit else last
            if all(since > needed for since in read_to.values()):
                return names[:limit]
            read_to = {shard: since for shard, since in read_to.items() if since <= needed}

    def _read(self, shard: int, first: str, last: str, limit: int) -> tuple[list[str], bool]:
        with translated():
            answer = self.client.query(
                TableName=self.table,
                ConsistentRead=True,
                KeyConditionExpression="p = :p AND s BETWEEN :begin AND :end",
                ExpressionAttributeValues={
                    ":p": {"S": registry_key(shard)},
                    ":begin": {"S": first},
                    ":end": {"S": last},
                },
                Limit=limit,
            )
        return [item["s"]["S"] for item in answer["Items"]], "LastEvaluatedKey" in answer
