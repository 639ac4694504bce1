"""The partition index in DynamoDB: a row per partition and index run, sorted by the run's end.

Two indexers that start at the same cursor may cover different spans; their rows have different keys and each is
complete for its span, so a late write by the slower one harms nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.adapters.dynamodb.batch import Item, put_all
from millrace.ledger.domain.names import Ledger, join_key
from millrace.ledger.ports import Together
from millrace.sync.ports import Hit, IndexRow, IndexRows

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class DynamoIndex:
    client: DynamoDBClient
    table: str
    together: Together

    def write(self, ledger: Ledger, rows: Sequence[IndexRow]) -> None:
        items = [
            {
                "p": {"S": _partition_key(ledger, row.partition)},
                "s": {"S": f"{row.end:016d}.{row.start:016d}"},
                "h": {"B": _pack(row)},
            }
            for row in rows
        ]
        put_all(self.client, self.table, items, self.together)

    def read(self, ledger: Ledger, partition: str, after: int, limit: int) -> IndexRows:
        with translated():
            answer = self.client.query(
                TableName=self.table,
                KeyConditionExpression="p = :p AND s > :after",
                ExpressionAttributeValues={
                    ":p": {"S": _partition_key(ledger, partition)},
                    ":after": {"S": f"{after:016d}.~"},
                },
                ConsistentRead=True,
                Limit=limit,
            )
        return IndexRows([_row(partition, item) for item in answer["Items"]], truncated="LastEvaluatedKey" in answer)

    def before(self, ledger: Ledger, partition: str, position: int) -> IndexRow | None:
        with translated():
            answer = self.client.query(
                TableName=self.table,
                KeyConditionExpression="p = :p AND s < :position",
                ExpressionAttributeValues={
                    ":p": {"S": _partition_key(ledger, partition)},
                    ":position": {"S": f"{position:016d}"},
                },
                ConsistentRead=True,
                ScanIndexForward=False,
                Limit=1,
            )
        return _row(partition, answer["Items"][0]) if answer["Items"] else None


def _partition_key(ledger: Ledger, partition: str) -> str:
    return f"{ledger.name}#{join_key(partition)}"


def _pack(row: IndexRow) -> bytes:
    """Per hit: its page's distance from the row's start, and its place in the page."""
    numbers = [number for hit in row.hits for number in (hit.page - row.start, hit.position - hit.page)]
    return struct.pack("<" + "IH" * len(row.hits), *numbers)


def _row(partition: str, item: Item) -> IndexRow:
    end, start = (int(part) for part in item["s"]["S"].split("."))
    packed: Any = item["h"]["B"]
    hits = [Hit(start + page + offset, start + page) for page, offset in struct.iter_unpack("<IH", packed)]
    return IndexRow(partition, start, end, hits)
