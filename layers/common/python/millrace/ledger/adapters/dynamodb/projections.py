"""Projections of ledgers in DynamoDB: what was folded out of the events up to a position.

A projection is one item, the head, and has its content in it. What does not fit is cut into pieces, items of their own,
which are written first; then the head is swapped and names them. So a reader sees the old projection or the new one,
and a process that dies leaves at most pieces that no head names. The next projection in pieces clears those away.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import condition_failed, refusals, translated
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Projection

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PIECE_BYTES = 300_000
"""An item of DynamoDB may have 400 KB."""
PATIENCE = 20
"""Projections that others may store while this one is being read."""
HEAD = "projection"


@dataclass(frozen=True, slots=True)
class DynamoProjections:
    client: DynamoDBClient
    table: str
    kind: str
    """What is projected: `transcript`, `status`."""
    new_edition: Callable[[], str]
    """A name that is never given twice."""
    piece_bytes: int = PIECE_BYTES

    def load(self, ledger: Ledger) -> Projection:
        for _ in range(PATIENCE):
            head = self._head(ledger)
            if not head:
                return Projection(0, {})
            packed = head["d"]["B"] if "d" in head else self._joined(ledger, head)
            if packed is not None:
                lost, edition = int(head.get("l", {"N": "0"})["N"]), head.get("g", {"S": _unnamed(head)})["S"]
                return Projection(int(head["v"]["N"]), json.loads(zlib.decompress(packed)), lost, edition)
        raise Unavailable("What was projected is stored anew all the time; try again later.")

    def store(self, ledger: Ledger, projection: Projection, over: Projection) -> bool:
        edition = self.new_edition()
        packed = zlib.compress(json.dumps(projection.state, separators=(",", ":")).encode(), 1)
        head: dict[str, Any] = {
            **self._key(ledger),
            "v": {"N": str(projection.through)},
            "g": {"S": edition},
            **({"l": {"N": str(projection.lost_through)}} if projection.lost_through else {}),
        }
        if len(packed) <= self.piece_bytes:
            return self._swap(ledger, {**head, "d": {"B": packed}}, over)
        pieces = [packed[at : at + self.piece_bytes] for at in range(0, len(packed), self.piece_bytes)]
        # Whoever wrote these began from an earlier head than the next one, so that they can never be named by any.
        left = self._sort_keys(ledger)
        for number, piece in enumerate(pieces):
            with translated():
                item: dict[str, Any] = {**self._key(ledger, _piece(edition, number)), "d": {"B": piece}}
                self.client.put_item(TableName=self.table, Item=item)
        if not self._swap(ledger, {**head, "n": {"N": str(len(pieces))}}, over):
            self._clear(ledger, [_piece(edition, number) for number in range(len(pieces))])
            return False
        self._clear(ledger, left)
        return True

    def _swap(self, ledger: Ledger, head: dict[str, Any], over: Projection) -> bool:
        """Replace the head if it is still that of `over`."""
        condition, values = _still(over)
        try:
            with translated():
                answer = _put(self.client, self.table, head, condition, values)
        except _Lost as lost:
            # The SDK asks again when an answer is lost: then our own head is what stands in the way.
            return bool(lost.stored.get("g") == head["g"])
        replaced: Any = answer.get("Attributes", {})
        self._clear(ledger, _pieces_of(replaced))
        return True

    def _joined(self, ledger: Ledger, head: Any) -> bytes | None:
        """The content out of its pieces; None if another projection has been stored meanwhile."""
        prefix, count = _piece(head["g"]["S"], None), int(head["n"]["N"])
        found = [item["d"]["B"] for item in self._items(ledger, prefix, "s, d")]
        if len(found) == count:
            return b"".join(bytes(piece) for piece in found)
        if self._head(ledger).get("g") == head["g"]:
            raise Unavailable("A piece of what was projected is missing.", kind=self.kind)
        return None

    def _head(self, ledger: Ledger) -> Any:
        with translated():
            answer = self.client.get_item(TableName=self.table, Key=self._key(ledger), ConsistentRead=True)
        return answer.get("Item", {})

    def _sort_keys(self, ledger: Ledger) -> list[str]:
        return [item["s"]["S"] for item in self._items(ledger, f"{HEAD}#", "s")]

    def _items(self, ledger: Ledger, prefix: str, attributes: str) -> Iterator[Any]:
        request: dict[str, Any] = {
            "TableName": self.table,
            "KeyConditionExpression": "p = :p AND begins_with(s, :s)",
            "ExpressionAttributeValues": {":p": self._key(ledger)["p"], ":s": {"S": prefix}},
            "ProjectionExpression": attributes,
            "ConsistentRead": True,
        }
        while True:
            with translated():
                answer: Any = self.client.query(**request)
            yield from answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _clear(self, ledger: Ledger, sort_keys: Collection[str]) -> None:
        """Best effort: what stays costs storage and nothing else."""
        with suppress(Unavailable), translated():
            for sort in sort_keys:
                self.client.delete_item(TableName=self.table, Key=self._key(ledger, sort))

    def _key(self, ledger: Ledger, sort: str = HEAD) -> dict[str, Any]:
        return {"p": {"S": f"{self.kind}#{ledger.name}"}, "s": {"S": sort}}


class _Lost(Exception):
    """Another head is stored."""

    def __init__(self, stored: Any) -> None:
        super().__init__()
        self.stored = stored


def _put(client: DynamoDBClient, table: str, item: dict[str, Any], condition: str, values: Any) -> Any:
    try:
        return client.put_item(
            TableName=table,
            Item=item,
            ConditionExpression=condition,
            **({"ExpressionAttributeValues": values} if values else {}),
            ReturnValues="ALL_OLD",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    except refusals() as error:
        if not condition_failed(error):
            raise
        raise _Lost(error.response.get("Item", {})) from error


def _still(over: Projection) -> tuple[str, dict[str, Any]]:
    """The condition that the stored head is that of `over`."""
    if not over.edition:
        return "attribute_not_exists(p)", {}
    if over.edition == f"v{over.through}":
        return "attribute_not_exists(g) AND v = :v", {":v": {"N": str(over.through)}}
    return "g = :g", {":g": {"S": over.edition}}


def _unnamed(head: Any) -> str:
    """A head from the time when a projection was known by its position alone."""
    return f"v{head['v']['N']}"


def _piece(edition: str, number: int | None) -> str:
    return f"{HEAD}#{edition}#" + ("" if number is None else f"{number:06}")


def _pieces_of(head: Any) -> list[str]:
    if "n" not in head:
        return []
    return [_piece(head["g"]["S"], number) for number in range(int(head["n"]["N"]))]
