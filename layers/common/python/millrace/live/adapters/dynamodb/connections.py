"""Connections in DynamoDB: one item per socket, which expires some time after the socket must have been closed."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, condition_failed, refusals, translated
from millrace.ledger.adapters.dynamodb.readable import reading
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import Unavailable, UnreadableRow
from millrace.ledger.domain.stored import known
from millrace.live.adapters.dynamodb.places import LIFE_SECONDS, connection_key, place_of_connection
from millrace.live.domain.line import SLOW, SUBMIT, SYNC, TURN_MS, is_dead
from millrace.live.domain.messages import MAX_IN_FLIGHT, MAX_MESSAGES_PER_SECOND
from millrace.live.ports import Connection, Cycle, Turn

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ALIVE = "(attribute_not_exists(#until) OR #until > :now OR served = taken)"
"""`is_dead` of the row, the other way round."""
WINDOW = "w#"
"""Before a second: how many messages came in it."""


@dataclass(frozen=True, slots=True)
class DynamoConnections:
    client: DynamoDBClient
    table: str

    def open(self, id_: str, now_ms: int) -> None:
        item: dict[str, Any] = {**connection_key(id_), "ttl": {"N": str(now_ms // 1000 + LIFE_SECONDS)}}
        with translated():
            self.client.put_item(TableName=self.table, Item=item)

    def line_up(self, id_: str, kind: str, now_ms: int) -> Turn:
        """One write. Each second has a counter of its own, so that the first message of a second costs no second one;
        the turns that follow drop those that are past."""
        token = os.urandom(6).hex()
        sets = ["taken = if_not_exists(taken, :zero) + :one", "#w = if_not_exists(#w, :zero) + :one"]
        sets += ["k = :token", "#until = :until"]
        conditions = ["attribute_exists(p)", _below("#w", ":most"), "(attribute_not_exists(k) OR k <> :token)", ALIVE]
        values: dict[str, Any] = {
            ":zero": {"N": "0"},
            ":one": {"N": "1"},
            ":token": {"S": token},
            ":until": {"N": str(now_ms + TURN_MS)},
            ":now": {"N": str(now_ms)},
            ":most": {"N": str(MAX_MESSAGES_PER_SECOND)},
        }
        if kind == SUBMIT:
            sets.append("f = if_not_exists(f, :zero) + :one")
            conditions.append(_below("f", ":cap"))
            values[":cap"] = {"N": str(MAX_IN_FLIGHT)}
        if kind == SYNC:
            sets.append("y = :one")
            conditions.append(_below("y", ":one"))
        if kind in SLOW:
            sets.append("slow = if_not_exists(taken, :zero) + :one")
        window = f"{WINDOW}{now_ms // 1000}"
        with translated():
            try:
                answer: Any = self.client.update_item(
                    TableName=self.table,
                    Key=connection_key(id_),
                    UpdateExpression=f"SET {', '.join(sets)}",
                    ConditionExpression=" AND ".join(conditions),
                    ExpressionAttributeNames={"#w": window, "#until": "until"},
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except refusals() as error:
                if not condition_failed(error):
                    raise
                item: Any = error.response.get("Item")
                if item and item.get("k", {}).get("S") == token:
                    return _turn(id_, item, kind, _number(item, "taken"))  # the answer to the first try was lost
                return Turn(kind, refused=_refusal(item, kind, window, now_ms))
        return _turn(id_, answer["Attributes"], kind, _number(answer["Attributes"], "taken"))

    def look(self, id_: str, turn: Turn) -> Turn:
        with translated():
            item: Any = self.client.get_item(TableName=self.table, Key=connection_key(id_), ConsistentRead=True).get(
                "Item"
            )
        return _turn(id_, item, turn.kind, turn.number) if item else replace(turn, refused="gone")

    def end_turn(self, turn: Turn, connection: Connection, now_ms: int) -> None:
        """A connection that was removed meanwhile stays removed, and a turn that has ended is not ended again."""
        stored = asdict(connection)
        if connection.identity is not None:
            identity = stored["identity"]
            identity["projects"], identity["roles"] = sorted(identity["projects"]), sorted(identity["roles"])
        sets = ["c = :c", "served = :number", "moved = :now"]
        values: dict[str, Any] = {
            ":c": {"S": json.dumps(stored)},
            ":number": {"N": str(turn.number)},
            ":now": {"N": str(now_ms)},
        }
        if turn.kind == SUBMIT:
            sets.append("f = f - :one")
            values[":one"] = {"N": "1"}
        if turn.kind == SYNC:
            sets.append("y = :zero")
            values[":zero"] = {"N": "0"}
        past = {f"#w{second}": f"{WINDOW}{second}" for second in turn.seconds if second < now_ms // 1000}
        update: dict[str, Any] = {
            "TableName": self.table,
            "Key": connection_key(connection.id),
            "UpdateExpression": f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(past)}" if past else ""),
            "ConditionExpression": f"attribute_exists(p) AND {_below('served', ':number')}",
            "ExpressionAttributeValues": values,
        }
        if past:
            update["ExpressionAttributeNames"] = past
        applied(lambda: self.client.update_item(**update))

    def is_stranger(self, id_: str, now_ms: int) -> bool:
        with translated():
            item: Any = self.client.get_item(TableName=self.table, Key=connection_key(id_), ConsistentRead=True).get(
                "Item"
            )
        if item and _number(item, "served") < _number(item, "taken") and not _is_dead(item, now_ms):
            raise Unavailable("A message of this connection is being handled.")
        try:
            return not item or connection_of(id_, item).identity is None
        except UnreadableRow:
            return True  # whatever it says next would end it

    def remove(self, id_: str) -> None:
        """The place that it takes first: were its row gone, nobody would find it any more."""
        with translated():
            item: Any = self.client.get_item(TableName=self.table, Key=connection_key(id_), ConsistentRead=True)
            tenant = item.get("Item", {}).get("t")
            if tenant is not None:
                self.client.delete_item(TableName=self.table, Key=place_of_connection(tenant["S"], id_))
            self.client.delete_item(TableName=self.table, Key=connection_key(id_))


def _below(name: str, limit: str) -> str:
    return f"(attribute_not_exists({name}) OR {name} < {limit})"


def _number(item: Any, name: str) -> int:
    return int(item[name]["N"]) if name in item else 0


def _is_dead(item: Any, now_ms: int) -> bool:
    return is_dead(_number(item, "taken"), _number(item, "served"), _number(item, "until"), now_ms)


def _refusal(item: Any, kind: str, window: str, now_ms: int) -> str:
    if not item:
        return "gone"
    if _is_dead(item, now_ms):
        return "stuck"
    if kind == SYNC and _number(item, "y"):
        return SYNC
    return "rate" if _number(item, window) >= MAX_MESSAGES_PER_SECOND else "in_flight"


def _turn(id_: str, item: Any, kind: str, number: int) -> Turn:
    return Turn(
        kind,
        connection_of(id_, item),
        number=number,
        served=_number(item, "served"),
        moved_ms=_number(item, "moved"),
        slow=_number(item, "slow"),
        seconds=tuple(int(name.removeprefix(WINDOW)) for name in item if name.startswith(WINDOW)),
    )


def connection_of(id_: str, item: Any) -> Connection:
    if "c" not in item:
        return Connection(id_)
    with reading("connection", id_):
        stored = json.loads(item["c"]["S"])
        identity, cycle = stored.pop("identity"), stored.pop("cycle")
        if identity is not None:
            identity = Identity(
                **{
                    **known(Identity, identity),
                    "projects": frozenset(identity["projects"]),
                    "roles": frozenset(identity["roles"]),
                    "partitions": tuple(identity["partitions"]),
                }
            )
        if cycle is not None:
            partitions = cycle["partitions"]
            cycle = Cycle(None if partitions is None else tuple(partitions), cycle["next_since"], cycle["sync_to"])
        return Connection(**{**known(Connection, stored), "identity": identity, "cycle": cycle})
