"""Subscriptions in DynamoDB: an item per partition, so that only those that are found cost reads.

Beside them, under the connection's own key, an item that lists where they are, written first and deleted last.

Sort keys begin with the slot of the connection, so that a shard of a crowd is a range of them. Rows without a slot are
from before there were shards: such a row is in the shard that its key happens to be in, and ends with its connection.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
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
from millrace.live.domain.shards import EVERYONE, Shard, key_of
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
        new = key_of(subscription.connection, subscription.id)
        keys = _lookup_keys(subscription)
        ttl = {"N": str(self.clock() // 1000 + LIFE_SECONDS)}
        listed = {
            **_list_key(subscription.connection, subscription.id),
            "k": {"S": json.dumps(keys)},
            "r": {"S": new},
            "ttl": ttl,
        }
        if subscription.id != SYNC:
            listed["t"] = {"S": split_key(subscription.ledger)[1]}
        with translated():
            self.client.put_item(TableName=self.table, Item=listed)
        content = {"S": json.dumps(asdict(subscription))}
        live = {"N": "0" if subscription.live else str(subscription.sender_until_ms)}
        items = [{**_row_key(key, new), "d": content, "u": live, "ttl": ttl} for key in keys]
        put_all(self.client, self.table, items, self.together)
        gone = [row for row in before if row["s"]["S"] != new or row["p"]["S"] not in keys]
        delete_all(self.client, self.table, gone, self.together)

    def find(
        self, ledger: Ledger, partitions: Collection[str], shard: Shard = EVERYONE, most: int | None = None
    ) -> Sequence[Subscription]:
        keys = [_whole(ledger.name), *(_partition(ledger.name, name) for name in sorted(partitions))]
        answers = self.together([partial(self._query, key, shard, most) for key in keys])
        found = {(s.connection, s.id): s for answer in answers for s in answer}
        return list(found.values())

    def note_missed(self, subscription: Subscription, through: int) -> Subscription | None:
        _, row = self._change(
            (subscription.ledger, subscription.connection, subscription.id),
            "SET m = :through",
            f"attribute_exists(p) AND u <> :live AND {NOT_YET_NOTED}",
            {":through": {"N": str(through)}, ":live": {"N": "0"}},
        )
        return _subscription(row) if row and row["u"]["N"] == "0" else None

    def go_live(self, subscription: Subscription, sent: int) -> int | None:
        done, row = self._change(
            (subscription.ledger, subscription.connection, subscription.id),
            "SET u = :live, a = :sent",
            "attribute_exists(p) AND (attribute_not_exists(m) OR m <= :sent)",
            {":live": {"N": "0"}, ":sent": {"N": str(sent)}},
        )
        return None if done or not row else int(row["m"]["N"])

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
        changes = "SET n = :next, u = :until, w = :sender"
        return self._change((ledger, connection, id_), changes, f"attribute_exists(p) AND {before}", values)[1]

    def _change(
        self, subscription: tuple[str, str, str], changes: str, condition: str, values: dict[str, Any]
    ) -> tuple[bool, Any]:
        """Whether a whole subscription's row was changed, and the row as it is then; None if there is none."""
        ledger, connection, id_ = subscription
        for sort_key in (key_of(connection, id_), _old_key(connection, id_)):
            with translated():
                try:
                    answer = self.client.update_item(
                        TableName=self.table,
                        Key=_row_key(_whole(ledger), sort_key),
                        UpdateExpression=changes,
                        ConditionExpression=condition,
                        ExpressionAttributeValues=values,
                        ReturnValues="ALL_NEW",
                        ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    )
                except refusals() as error:
                    if not condition_failed(error):
                        raise
                    row: Any = error.response.get("Item")
                    if row:
                        return False, row
                else:
                    return True, answer["Attributes"]
        return False, None

    def remove(self, connection: str, id_: str | None = None) -> None:
        for listed in list(query_all(self.client, self.table, f"c#{connection}", f"sub#{id_ or ''}")):
            name = listed["s"]["S"].removeprefix("sub#")
            if id_ not in (None, name):
                continue
            rows = self._rows(listed, connection, name)
            if "t" in listed:
                rows.append(place_of_subscription(listed["t"]["S"], connection, name))
            delete_all(self.client, self.table, rows, self.together)
            delete_all(self.client, self.table, [_list_key(connection, name)], self.together)

    def _listed(self, connection: str, id_: str) -> list[dict[str, Any]]:
        with translated():
            item = self.client.get_item(TableName=self.table, Key=_list_key(connection, id_), ConsistentRead=True).get(
                "Item"
            )
        return self._rows(item, connection, id_) if item else []

    def _rows(self, listed: Any, connection: str, id_: str) -> list[dict[str, Any]]:
        """None if that cannot be read: the rows that it listed end with the life of the connection."""
        sort_key = listed["r"]["S"] if "r" in listed else _old_key(connection, id_)
        return [_row_key(key, sort_key) for key in next(iter(readable([listed], _listed_keys, self.tell)), [])]

    def _query(self, key: str, shard: Shard, most: int | None) -> list[Subscription]:
        """No key is a range's end itself: the ends are shorter than a key's slot with what follows it."""
        rows = query_all(self.client, self.table, key, since=shard.first, through=shard.end)
        return [self._read(item) for item in islice(rows, None if most is None else most + 1)]

    def _read(self, item: Any) -> Subscription:
        """One that cannot be read is as good as one whose sender died: its connection is closed, and comes again."""
        try:
            return _subscription(item)
        except UnreadableRow as unreadable:
            self.tell(unreadable)
            connection, _, id_ = _without_slot(item["s"]["S"]).partition("#")
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


def _row_key(key: str, sort_key: str) -> dict[str, Any]:
    return {"p": {"S": key}, "s": {"S": sort_key}}


def _old_key(connection: str, id_: str) -> str:
    return f"{connection}#{id_}"


def _without_slot(sort_key: str) -> str:
    rest = sort_key.partition("#")[2]
    connection, _, id_ = rest.partition("#")
    return rest if key_of(connection, id_) == sort_key else sort_key


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
