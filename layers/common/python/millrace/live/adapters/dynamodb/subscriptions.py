"""Subscriptions in DynamoDB: an item per partition, so that only those that are found cost reads.

Beside them, under the connection's own key, an item that lists where they are, written first and deleted last.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import condition_failed, refusals, translated
from millrace.ledger.adapters.dynamodb.batch import delete_all, put_all
from millrace.ledger.adapters.dynamodb.readable import Tell, readable, reading
from millrace.ledger.adapters.dynamodb.state import query_all
from millrace.ledger.domain.errors import UnreadableRow, unheard
from millrace.ledger.domain.names import Ledger, join_key, split_key
from millrace.ledger.domain.stored import known
from millrace.ledger.ports import Together
from millrace.live.adapters.dynamodb.places import LIFE_SECONDS, place_of_subscription
from millrace.live.domain.events import SYNC
from millrace.live.ports import Handover, Subscription, TakenSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_dynamodb import DynamoDBClient

NOT_YET_NOTED = "(attribute_not_exists(m) OR m < :through)"


@dataclass(frozen=True, slots=True)
class DynamoSubscriptions:
    client: DynamoDBClient
    table: str
    together: Together
    clock: Callable[[], int]
    tell: Tell = unheard

    def add(self, subscription: Subscription) -> None:
        before = self._listed(subscription.connection, subscription.id)
        keys = _lookup_keys(subscription)
        ttl = {"N": str(self.clock() // 1000 + LIFE_SECONDS)}
        listed = {**_list_key(subscription.connection, subscription.id), "k": {"S": json.dumps(keys)}, "ttl": ttl}
        if subscription.id != SYNC:
            listed["t"] = {"S": split_key(subscription.ledger)[1]}
        with translated():
            self.client.put_item(TableName=self.table, Item=listed)
        content = {"S": json.dumps(asdict(subscription))}
        live = {"N": "0" if subscription.live else str(subscription.sender_until_ms)}
        items = [{**_row_key(key, subscription), "d": content, "u": live, "ttl": ttl} for key in keys]
        put_all(self.client, self.table, items, self.together)
        gone = [_row_key(key, subscription) for key in before if key not in keys]
        delete_all(self.client, self.table, gone, self.together)

    def find(self, ledger: Ledger, partitions: Collection[str]) -> Sequence[Subscription]:
        keys = [_whole(ledger.name), *(_partition(ledger.name, name) for name in sorted(partitions))]
        answers = self.together([partial(self._query, key) for key in keys])
        found = {(s.connection, s.id): s for answer in answers for s in answer}
        return list(found.values())

    def note_missed(self, subscription: Subscription, through: int) -> Subscription | None:
        with translated():
            try:
                self.client.update_item(
                    TableName=self.table,
                    Key=_row_key(_whole(subscription.ledger), subscription),
                    UpdateExpression="SET m = :through",
                    ConditionExpression=f"attribute_exists(p) AND u <> :live AND {NOT_YET_NOTED}",
                    ExpressionAttributeValues={":through": {"N": str(through)}, ":live": {"N": "0"}},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except refusals() as error:
                if not condition_failed(error):
                    raise
                item: Any = error.response.get("Item")
                return _subscription(item) if item and item["u"]["N"] == "0" else None
        return None

    def go_live(self, subscription: Subscription, sent: int) -> int | None:
        with translated():
            try:
                self.client.update_item(
                    TableName=self.table,
                    Key=_row_key(_whole(subscription.ledger), subscription),
                    UpdateExpression="SET u = :live, a = :sent",
                    ConditionExpression="attribute_exists(p) AND (attribute_not_exists(m) OR m <= :sent)",
                    ExpressionAttributeValues={":live": {"N": "0"}, ":sent": {"N": str(sent)}},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except refusals() as error:
                if not condition_failed(error):
                    raise
                item: Any = error.response.get("Item")
                return int(item["m"]["N"]) if item else None
        return None

    def hand_over(self, subscription: Subscription, step: int, until_ms: int) -> bool:
        before = "attribute_not_exists(n)" if step == 0 else "n = :step"
        row = self._to_step(subscription.ledger, subscription.connection, subscription.id, before, step, until_ms, "")
        return row is not None and _step(row) == step + 1

    def take_over(self, handover: Handover, until_ms: int, sender: str) -> TakenSnapshot | None:
        at = (handover.ledger, handover.connection, handover.id)
        row = self._to_step(*at, "n = :step", handover.step, until_ms, sender)
        if row is None:
            return None
        return TakenSnapshot(self._read(row), _step(row), mine=row.get("w", {}).get("S") == sender)

    def _to_step(
        self, ledger: str, connection: str, id_: str, before: str, step: int, until_ms: int, sender: str
    ) -> Any:
        """The row at its next step, or as it is if it was not at this one; None if there is none."""
        values: dict[str, Any] = {
            ":next": {"N": str(step + 1)},
            ":until": {"N": str(until_ms)},
            ":sender": {"S": sender},
        }
        if ":step" in before:
            values[":step"] = {"N": str(step)}
        with translated():
            try:
                return self.client.update_item(
                    TableName=self.table,
                    Key={"p": {"S": _whole(ledger)}, "s": {"S": f"{connection}#{id_}"}},
                    UpdateExpression="SET n = :next, u = :until, w = :sender",
                    ConditionExpression=f"attribute_exists(p) AND {before}",
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )["Attributes"]
            except refusals() as error:
                if not condition_failed(error):
                    raise
                return error.response.get("Item")

    def remove(self, connection: str, id_: str | None = None) -> None:
        for listed in list(query_all(self.client, self.table, f"c#{connection}", f"sub#{id_ or ''}")):
            name = listed["s"]["S"].removeprefix("sub#")
            if id_ not in (None, name):
                continue
            rows = [{"p": {"S": key}, "s": {"S": f"{connection}#{name}"}} for key in self._keys(listed)]
            if "t" in listed:
                rows.append(place_of_subscription(listed["t"]["S"], connection, name))
            delete_all(self.client, self.table, rows, self.together)
            delete_all(self.client, self.table, [_list_key(connection, name)], self.together)

    def _listed(self, connection: str, id_: str) -> list[str]:
        with translated():
            item = self.client.get_item(TableName=self.table, Key=_list_key(connection, id_), ConsistentRead=True).get(
                "Item"
            )
        return self._keys(item) if item else []

    def _keys(self, listed: Any) -> list[str]:
        """None if that cannot be read: the rows that it listed end with the life of the connection."""
        return next(iter(readable([listed], _listed_keys, self.tell)), [])

    def _query(self, key: str) -> list[Subscription]:
        return [self._read(item) for item in query_all(self.client, self.table, key)]

    def _read(self, item: Any) -> Subscription:
        """One that cannot be read is as good as one whose sender died: its connection is closed, and comes again."""
        try:
            return _subscription(item)
        except UnreadableRow as unreadable:
            self.tell(unreadable)
            connection, _, id_ = item["s"]["S"].partition("#")
            return Subscription(connection, id_, "", None, "", "", 0, 0, sender_until_ms=1)


def _step(row: Any) -> int:
    return int(row["n"]["N"]) if "n" in row else 0


def _whole(ledger: str) -> str:
    return f"w#{ledger}"


def _partition(ledger: str, name: str) -> str:
    return f"l#{ledger}#{join_key(name)}"


def _lookup_keys(subscription: Subscription) -> list[str]:
    if subscription.partitions is None:
        return [_whole(subscription.ledger)]
    return [_partition(subscription.ledger, name) for name in subscription.partitions]


def _row_key(key: str, subscription: Subscription) -> dict[str, Any]:
    return {"p": {"S": key}, "s": {"S": f"{subscription.connection}#{subscription.id}"}}


def _list_key(connection: str, id_: str) -> dict[str, Any]:
    return {"p": {"S": f"c#{connection}"}, "s": {"S": f"sub#{id_}"}}


def _listed_keys(item: Any) -> list[str]:
    with reading("subscription", item["s"]["S"]):
        keys = json.loads(item["k"]["S"])
        return [str(key) for key in keys]


def listed_ledger(item: Any) -> str:
    """The ledger that a connection's row of a subscription leads to."""
    kind, _, rest = next(iter(_listed_keys(item)), "").partition("#")
    return rest if kind == "w" else rest.rpartition("#")[0]


def _subscription(item: Any) -> Subscription:
    with reading("subscription", item["s"]["S"]):
        stored = json.loads(item["d"]["S"])
        if stored["partitions"] is not None:
            stored["partitions"] = tuple(stored["partitions"])
        stored["sender_until_ms"] = int(item["u"]["N"])
        if "a" in item:
            stored["after"] = int(item["a"]["N"])
        return Subscription(**known(Subscription, stored))
