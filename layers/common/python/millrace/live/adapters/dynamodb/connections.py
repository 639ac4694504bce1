"""Connections in DynamoDB: one item per socket, which expires some time after the socket must have been closed."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from millrace.ledger.adapters.aws_errors import applied, condition_failed, translated
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import Unavailable
from millrace.live.domain.messages import MAX_MESSAGES_PER_SECOND
from millrace.live.ports import Connection, Cycle, Turn

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LIFE_SECONDS = 3 * 3600
"""API Gateway ends a connection after two hours."""
ROW = "connection"


@dataclass(frozen=True, slots=True)
class DynamoConnections:
    client: DynamoDBClient
    table: str

    def open(self, id_: str, now_ms: int) -> None:
        item: dict[str, Any] = {
            **_key(id_),
            "w": {"N": "0"},
            "n": {"N": "0"},
            "until": {"N": "0"},
            "ttl": {"N": str(now_ms // 1000 + LIFE_SECONDS)},
        }
        with translated():
            self.client.put_item(TableName=self.table, Item=item)

    def take_turn(self, id_: str, message_type: str, now_ms: int, until_ms: int) -> Turn:
        """Usually one write; the first message of a second needs a second one to start a new window."""
        token = os.urandom(6).hex()
        turn = self._try(id_, message_type, now_ms, until_ms, token, same_second=True)
        if turn is None:
            turn = self._try(id_, message_type, now_ms, until_ms, token, same_second=False)
        return turn or Turn(refused="rate")

    def _try(
        self, id_: str, message_type: str, now_ms: int, until_ms: int, token: str, *, same_second: bool
    ) -> Turn | None:
        """None: it is another second than this try supposed. Whoever meets its own token has the turn already."""
        window = ("n = n + :one", "w = :second AND n < :most") if same_second else ("n = :one", "w <> :second")
        values: dict[str, Any] = {
            ":busy": {"S": message_type[:64]},
            ":until": {"N": str(until_ms)},
            ":now": {"N": str(now_ms)},
            ":second": {"N": str(now_ms // 1000)},
            ":one": {"N": "1"},
            ":token": {"S": token},
        }
        if same_second:
            values[":most"] = {"N": str(MAX_MESSAGES_PER_SECOND)}
        with translated():
            try:
                answer = self.client.update_item(
                    TableName=self.table,
                    Key=_key(id_),
                    UpdateExpression=f"SET busy = :busy, #until = :until, k = :token, w = :second, {window[0]}",
                    ConditionExpression=f"attribute_exists(p) AND #until <= :now AND {window[1]}",
                    ExpressionAttributeNames={"#until": "until"},
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except ClientError as error:
                if not condition_failed(error):
                    raise
                item: Any = error.response.get("Item")
                if item and item.get("k", {}).get("S") == token:
                    return Turn(_connection(id_, item))
                return _refusal(item, now_ms)
        return Turn(_connection(id_, answer["Attributes"]))

    def end_turn(self, connection: Connection) -> None:
        """A connection that was removed meanwhile stays removed."""
        stored = asdict(connection)
        if connection.identity is not None:
            identity = stored["identity"]
            identity["projects"], identity["roles"] = sorted(identity["projects"]), sorted(identity["roles"])
        applied(
            lambda: self.client.update_item(
                TableName=self.table,
                Key=_key(connection.id),
                UpdateExpression="SET c = :c, #until = :free",
                ConditionExpression="attribute_exists(p)",
                ExpressionAttributeNames={"#until": "until"},
                ExpressionAttributeValues={":c": {"S": json.dumps(stored)}, ":free": {"N": "0"}},
            )
        )

    def is_stranger(self, id_: str, now_ms: int) -> bool:
        with translated():
            item: Any = self.client.get_item(TableName=self.table, Key=_key(id_), ConsistentRead=True).get("Item")
        if item and int(item["until"]["N"]) > now_ms:
            raise Unavailable("A message of this connection is being handled.")
        return not item or _connection(id_, item).identity is None

    def remove(self, id_: str) -> None:
        with translated():
            self.client.delete_item(TableName=self.table, Key=_key(id_))


def _key(id_: str) -> dict[str, Any]:
    return {"p": {"S": f"c#{id_}"}, "s": {"S": ROW}}


def _refusal(item: Any, now_ms: int) -> Turn | None:
    if not item:
        return Turn(refused="gone")
    if int(item["until"]["N"]) > now_ms:
        return Turn(refused=item["busy"]["S"] or "?")
    if int(item["w"]["N"]) == now_ms // 1000 and int(item["n"]["N"]) >= MAX_MESSAGES_PER_SECOND:
        return Turn(refused="rate")
    return None


def _connection(id_: str, item: Any) -> Connection:
    if "c" not in item:
        return Connection(id_)
    stored = json.loads(item["c"]["S"])
    identity, cycle = stored.pop("identity"), stored.pop("cycle")
    if identity is not None:
        identity = Identity(
            **{
                **identity,
                "projects": frozenset(identity["projects"]),
                "roles": frozenset(identity["roles"]),
                "partitions": tuple(identity["partitions"]),
            }
        )
    if cycle is not None:
        partitions = cycle["partitions"]
        cycle = Cycle(None if partitions is None else tuple(partitions), cycle["next_since"], cycle["sync_to"])
    return Connection(**stored, identity=identity, cycle=cycle)
