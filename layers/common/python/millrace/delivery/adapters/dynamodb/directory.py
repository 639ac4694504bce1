"""The hub's targets and how they fare, in DynamoDB: a tenant's are in one partition, so that one query has them all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from millrace.delivery.adapters.dynamodb import keys
from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.targets import Blocked, TargetState
from millrace.delivery.ports.targets import Everything, Kept
from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.adapters.dynamodb.readable import Tell, readable, reading
from millrace.ledger.adapters.dynamodb.state import query_all
from millrace.ledger.domain.errors import UnreadableRow, unheard
from millrace.ledger.domain.names import split_key
from millrace.ledger.domain.stored import known

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TENANTS = "tenants"
TARGET, STATE = "def#", "state#"


@dataclass(frozen=True, slots=True)
class DynamoDirectory:
    client: DynamoDBClient
    table: str
    tell: Tell = unheard

    def get(self, tenant: str, target_id: str) -> Kept | None:
        stored = self.item(tenant, TARGET + target_id)
        if stored is None:
            return None
        return Kept(_target(tenant, stored), _state(self.item(tenant, STATE + target_id)))

    def of(self, tenant: str) -> Sequence[Kept]:
        return self.everything(tenant).kept

    def everything(self, tenant: str) -> Everything:
        items = {item["s"]["S"]: item for item in query_all(self.client, self.table, keys.targets(tenant))}
        unreadable: list[str] = []

        def tell(row: UnreadableRow) -> None:
            unreadable.append(str(row.details["key"]))
            self.tell(row)

        def read(sort: str) -> Kept:
            return Kept(_target(tenant, items[sort]), _state(items.get(STATE + sort.removeprefix(TARGET))))

        kept = list(readable((sort for sort in items if sort.startswith(TARGET)), read, tell))
        return Everything(kept, unreadable)

    def tenants(self) -> Iterable[str]:
        return (item["s"]["S"] for item in query_all(self.client, self.table, TENANTS))

    def former(self, tenant: str) -> Iterable[str]:
        return (item["s"]["S"] for item in query_all(self.client, self.table, keys.former(tenant)))

    def put(self, target: HubTarget, before: HubTarget | None) -> bool:
        """The tenant first: what a reminder cannot find would never be retried."""
        if before is None:
            with translated():
                self.client.put_item(TableName=self.table, Item=keys.key(TENANTS, target.tenant))
        item: dict[str, Any] = {
            **keys.key(keys.targets(target.tenant), TARGET + target.id),
            "d": {"S": target.stored()},
            "k": {"B": target.sealed},
            "r": {"N": str(target.revision)},
        }
        more: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(p)"}
        if before is not None:
            values = {":before": {"N": str(before.revision)}, ":made": {"S": _made(before)}}
            more = {"ConditionExpression": "r = :before AND m = :made", "ExpressionAttributeValues": values}
        item["m"] = {"S": _made(target)}
        return applied(partial(self.client.put_item, TableName=self.table, Item=item, **more))

    def remove(self, tenant: str, target_id: str) -> bool:
        if self.item(tenant, TARGET + target_id) is None:
            return False
        with translated():
            self.client.put_item(TableName=self.table, Item=keys.key(keys.former(tenant), target_id))
        there = applied(
            partial(
                self.client.delete_item,
                TableName=self.table,
                Key=keys.key(keys.targets(tenant), TARGET + target_id),
                ConditionExpression="attribute_exists(p)",
            )
        )
        with translated():
            self.client.delete_item(TableName=self.table, Key=keys.key(keys.targets(tenant), STATE + target_id))
        return there

    def item(self, tenant: str, sort: str) -> Any:
        """Strongly consistent; None if it is not there."""
        with translated():
            answer = self.client.get_item(
                TableName=self.table, Key=keys.key(keys.targets(tenant), sort), ConsistentRead=True
            )
        return answer.get("Item")


@dataclass(frozen=True, slots=True)
class DynamoTargetStates:
    """`TargetStates` by a target's key, in the same partition."""

    directory: DynamoDirectory

    def get(self, target_id: str) -> TargetState:
        tenant, id_ = split_key(target_id)
        return _state(self.directory.item(tenant, STATE + id_))

    def fare(self, target_id: str, circuit: Circuit, detail: str) -> None:
        values = {":c": {"S": json.dumps(asdict(circuit))}, ":d": {"S": detail}}
        self._update(target_id, "SET c = :c, bd = :d REMOVE b, bm", values)

    def block(self, target_id: str, reason: Blocked, detail: str, now_ms: int) -> None:
        values = {":b": {"S": reason.value}, ":d": {"S": detail}, ":m": {"N": str(now_ms)}}
        self._update(target_id, "SET b = :b, bd = :d, bm = :m", values)

    def pause(self, target_id: str, why: str) -> None:
        self._update(target_id, "SET w = :w", {":w": {"S": why}})

    def pace(self, target_id: str, *, quick: bool) -> None:
        self._update(target_id, "SET q = :q", {":q": {"BOOL": quick}})

    def hand_over(self, target_id: str, next_send_ms: int) -> None:
        self._update(target_id, "SET ns = :n", {":n": {"N": str(next_send_ms)}})

    def _update(self, target_id: str, expression: str, values: dict[str, Any]) -> None:
        """Only what it is about: an operator and a drain may write at once."""
        tenant, id_ = split_key(target_id)
        with translated():
            self.directory.client.update_item(
                TableName=self.directory.table,
                Key=keys.key(keys.targets(tenant), STATE + id_),
                UpdateExpression=expression,
                ExpressionAttributeValues=values,
            )


def _made(target: HubTarget) -> str:
    """A target that was deleted and made anew is another one, whatever its revision."""
    return str(target.created_ms)


def _target(tenant: str, item: Any) -> HubTarget:
    id_ = item["s"]["S"].removeprefix(TARGET)
    with reading("target", id_):
        return HubTarget.of(tenant, id_, item["d"]["S"], bytes(item["k"]["B"]))


def _state(item: Any) -> TargetState:
    stored = item or {}
    with reading("target", stored.get("s", {}).get("S", "").removeprefix(STATE)):
        texts = {name: stored.get(name, {"S": ""})["S"] for name in ("w", "b", "bd")}
        circuit = Circuit(**known(Circuit, json.loads(stored["c"]["S"]))) if "c" in stored else Circuit()
        blocked_ms = int(stored.get("bm", {"N": "0"})["N"])
        quick = bool(stored.get("q", {"BOOL": False})["BOOL"])
        next_send_ms = int(stored.get("ns", {"N": "0"})["N"])
        return TargetState(circuit, texts["w"], texts["b"], texts["bd"], blocked_ms, quick, next_send_ms)
