"""Where each target stands in each ledger, in DynamoDB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from millrace.delivery.adapters.dynamodb import keys
from millrace.delivery.adapters.dynamodb.runs import Runs
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.targets import Position
from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.adapters.dynamodb.batch import get_all
from millrace.ledger.adapters.dynamodb.readable import Tell, readable, reading
from millrace.ledger.adapters.dynamodb.state import query_all
from millrace.ledger.domain.errors import unheard
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import State


@dataclass(frozen=True, slots=True)
class DynamoPositions:
    runs: Runs
    state: State
    tell: Tell = unheard

    def of(self, target: Target, ledgers: Sequence[str]) -> Mapping[str, Position]:
        wanted = [_key(target, ledger) for ledger in dict.fromkeys(ledgers)]
        items = get_all(self.runs.client, self.runs.table, wanted, self.runs.together, tries=6) if wanted else []
        return dict(readable(items, _named, self.tell))

    def all(self, target: Target, prefix: str = "") -> Iterable[tuple[str, Position]]:
        items = query_all(self.runs.client, self.runs.table, keys.cursors(target.id), prefix)
        return readable(items, _named, self.tell)

    def stored(self, target: Target, ledger: str) -> int:
        """0 if it has never been set."""
        with translated():
            answer = self.runs.client.get_item(TableName=self.runs.table, Key=_key(target, ledger), ConsistentRead=True)
        return _position(answer["Item"]).at if "Item" in answer else 0

    def start(self, target: Target, ledger: str) -> int:
        """The cursor; of a target that has never been here, where what is retained begins."""
        at = max(self.stored(target, ledger), target.start_at)
        return at or self.state.marks(Ledger.to_read(ledger)).floor - 1

    def begin_at(self, target: Target, ledger: str, position: int) -> None:
        if position == 0:
            return  # where it begins anyway; and a cursor that was never moved is an absent one
        applied(
            partial(
                self.runs.client.update_item,
                TableName=self.runs.table,
                Key=_key(target, ledger),
                UpdateExpression="SET v = :to",
                ConditionExpression="attribute_not_exists(v) OR v < :to",
                ExpressionAttributeValues={":to": {"N": str(position)}},
            )
        )

    def move(self, target: Target, ledger: str, expected: int, to: int, delivered: int) -> bool:
        """From where it was seen, counting what it passes; False if it stands elsewhere."""
        values: dict[str, Any] = {":to": {"N": str(to)}, ":passed": {"N": str(delivered)}}
        condition = "attribute_not_exists(v)"
        if expected:
            condition = "v = :expected"
            values[":expected"] = {"N": str(expected)}
        return applied(
            partial(
                self.runs.client.update_item,
                TableName=self.runs.table,
                Key=_key(target, ledger),
                UpdateExpression="SET v = :to ADD n :passed",
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
            )
        )

    def lowest_open(self, target: Target, ledger: str) -> int | None:
        lowest: list[int] = []
        for kind in (keys.TRANSIENT, keys.WAITING):
            begin = keys.pointers_of(kind, ledger)
            for pointers in self.runs.pointed(target.id, begin, begin + "~"):
                lowest += [int(one.sort.split(keys.END)[-2]) for one in pointers]
        return min(lowest, default=None)


def _key(target: Target, ledger: str) -> dict[str, Any]:
    return keys.key(keys.cursors(target.id), ledger)


def _position(item: Any) -> Position:
    """A row may count deliveries before it has a cursor."""
    with reading("cursor", item["s"]["S"]):
        return Position(int(item["v"]["N"]) if "v" in item else 0, int(item["n"]["N"]) if "n" in item else 0)


def _named(item: Any) -> tuple[str, Position]:
    return item["s"]["S"], _position(item)
