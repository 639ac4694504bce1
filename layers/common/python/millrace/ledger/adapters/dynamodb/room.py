"""The waiting room and the notice board in DynamoDB: a table of their own, which forgets by itself.

A ledger's requests lie in a few partitions, so that a thousand a second fit; its board is one row beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.adapters.dynamodb.batch import Item, delete_all
from millrace.ledger.adapters.dynamodb.readable import Tell, readable, reading
from millrace.ledger.domain import receipts
from millrace.ledger.domain.errors import unheard
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.packing import pack, unpack
from millrace.ledger.domain.page import Draft, Origin, Record
from millrace.ledger.domain.waiting import LONGEST_LEASE_MS, Notice, Waiting
from millrace.ledger.ports import Together

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SHARDS = 4
"""One partition takes 1,000 write units a second, and a small request costs two."""
LIFE_SECONDS = 600
"""How long what nobody cleared is kept; DynamoDB may take its time with it."""


@dataclass(frozen=True, slots=True)
class DynamoRoom:
    client: DynamoDBClient
    table: str
    together: Together
    tell: Tell = unheard
    """A request that cannot be read is its writer's alone, who gives up; it holds up nobody else."""

    def leave(self, ledger: Ledger, request: Waiting) -> None:
        with translated():
            self.client.put_item(TableName=self.table, Item=_row(ledger, request))

    def look(self, ledger: Ledger) -> Sequence[Waiting]:
        """One call for all partitions. Of more than 1 MB that waits, the rest is seen once those are cleared."""
        with translated():
            answer = self.client.execute_statement(
                Statement=f'SELECT * FROM "{self.table}" WHERE l IN [{", ".join("?" * SHARDS)}]',  # noqa: S608
                Parameters=[{"S": _shard_key(ledger, shard)} for shard in range(SHARDS)],
                ConsistentRead=True,
            )
        return list(readable(answer["Items"], _waiting, self.tell))

    def clear(self, ledger: Ledger, nonces: Sequence[bytes]) -> None:
        delete_all(self.client, self.table, [_key(ledger, nonce) for nonce in nonces], self.together)


@dataclass(frozen=True, slots=True)
class DynamoBoard:
    client: DynamoDBClient
    table: str

    def read(self, ledger: Ledger) -> Notice:
        with translated():
            item = self.client.get_item(TableName=self.table, Key=_board_key(ledger)).get("Item")
        if item is None:
            return Notice()
        return Notice(
            leader=item["h"]["B"],
            until_ms=int(item["u"]["N"]),
            receipts=receipts.unpack(item["r"]["B"]) if "r" in item else (),
            waiting=int(item["w"]["N"]) if "w" in item else 0,
        )

    def take(self, ledger: Ledger, leader: bytes, now_ms: int, until_ms: int) -> bool:
        return applied(
            lambda: self.client.update_item(
                TableName=self.table,
                Key=_board_key(ledger),
                UpdateExpression="SET h = :leader, u = :until, z = :forget",
                ConditionExpression="attribute_not_exists(u) OR u <= :now OR u > :late",
                ExpressionAttributeValues={
                    ":leader": {"B": leader},
                    ":until": {"N": str(until_ms)},
                    ":now": {"N": str(now_ms)},
                    ":late": {"N": str(now_ms + LONGEST_LEASE_MS)},
                    ":forget": {"N": str(now_ms // 1000 + LIFE_SECONDS)},
                },
            )
        )

    def post(self, ledger: Ledger, leader: bytes, notice: Notice) -> bool:
        return applied(
            lambda: self.client.update_item(
                TableName=self.table,
                Key=_board_key(ledger),
                UpdateExpression="SET h = :next, u = :until, r = :receipts, w = :waiting, z = :forget",
                ConditionExpression="h = :leader",
                ExpressionAttributeValues={
                    ":leader": {"B": leader},
                    ":next": {"B": notice.leader},
                    ":until": {"N": str(notice.until_ms)},
                    ":receipts": {"B": receipts.pack(notice.receipts)},
                    ":waiting": {"N": str(notice.waiting)},
                    ":forget": {"N": str(notice.until_ms // 1000 + LIFE_SECONDS)},
                },
            )
        )


def _board_key(ledger: Ledger) -> dict[str, Any]:
    return {"l": {"S": f"{ledger.name}#board"}, "k": {"B": b"board"}}


def _shard_key(ledger: Ledger, shard: int) -> str:
    return f"{ledger.name}#{shard}"


def _key(ledger: Ledger, nonce: bytes) -> dict[str, Any]:
    return {"l": {"S": _shard_key(ledger, nonce[-1] % SHARDS)}, "k": {"B": nonce}}


def _row(ledger: Ledger, request: Waiting) -> dict[str, Any]:
    records = [Record(draft.id, draft.digest, draft.body, draft.partitions) for draft in request.drafts]
    return {
        **_key(ledger, request.nonce),
        "m": {"N": str(request.mark)},
        "o": {"S": request.origin.client_id},
        "x": {"S": request.origin.connection},
        "s": {"BOOL": request.stops},
        "a": {"N": str(request.arrived_ms)},
        "u": {"N": str(request.ends_ms)},
        "e": {"B": pack(records)},
        "z": {"N": str(request.ends_ms // 1000 + LIFE_SECONDS)},
        **({"c": {"S": request.origin.trace}} if request.origin.trace else {}),
    }


def _waiting(item: Item) -> Waiting:
    with reading("request", str(item.get("l", {}).get("S", ""))):
        drafts = tuple(
            Draft(record.id, record.digest, record.body or b"", record.partitions) for record in unpack(item["e"]["B"])
        )
        return Waiting(
            nonce=item["k"]["B"],
            drafts=drafts,
            mark=int(item["m"]["N"]),
            origin=Origin(item["o"]["S"], item["x"]["S"], item.get("c", {}).get("S", "")),
            stops=item["s"]["BOOL"],
            arrived_ms=int(item["a"]["N"]),
            ends_ms=int(item["u"]["N"]),
        )
