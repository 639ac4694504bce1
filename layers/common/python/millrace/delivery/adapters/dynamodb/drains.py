"""Leases of drains in DynamoDB: a row per target that is drained now, in one partition per tenant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from millrace.delivery.adapters.dynamodb import keys
from millrace.delivery.domain.drains import EXPECTED_MS, DrainLease, WaitingTarget
from millrace.delivery.ports.drains import Expected, LeaseTaken
from millrace.ledger.adapters.aws_errors import applied, condition_failed, refusals, translated
from millrace.ledger.adapters.dynamodb.readable import Tell, readable, reading
from millrace.ledger.adapters.dynamodb.state import query_all
from millrace.ledger.domain.errors import UnreadableRow, unheard

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from mypy_boto3_dynamodb import DynamoDBClient


NOBODY = ""
"""Holds the row of a target whose wake-up was announced: a lease that has ended for everybody."""


@dataclass(frozen=True, slots=True)
class DynamoDrains:
    client: DynamoDBClient
    table: str
    tell: Tell = unheard

    def expect(self, tenant: str, target_id: str, now_ms: int) -> Expected:
        values: dict[str, Any] = {
            ":now": {"N": str(now_ms)},
            ":old": {"N": str(now_ms - EXPECTED_MS)},
            ":late": {"N": str(now_ms + EXPECTED_MS)},
            ":zero": {"N": "0"},
            ":nobody": {"S": NOBODY},
            ":quick": {"BOOL": False},
        }
        kept = "h = if_not_exists(h, :nobody), u = if_not_exists(u, :zero), l = if_not_exists(l, :quick)"
        with translated():
            try:
                self.client.update_item(
                    TableName=self.table,
                    Key=keys.key(keys.drains(tenant), target_id),
                    UpdateExpression=f"SET w = :now, f = if_not_exists(f, :now), {kept}",
                    ConditionExpression=(
                        "(attribute_not_exists(u) OR u <= :now) AND (attribute_not_exists(w) OR w <= :old OR w > :late)"
                    ),
                    ExpressionAttributeValues=values,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except refusals() as error:
                if not condition_failed(error):
                    raise
                return self._expected(tenant, error.response.get("Item") or self._item(tenant, target_id), now_ms)
        return Expected(mine=True)

    def _expected(self, tenant: str, item: Any, now_ms: int) -> Expected:
        if not item:
            return Expected(mine=True)
        try:
            drain = _drain(tenant, item)
        except UnreadableRow as unreadable:
            self.tell(unreadable)
            return Expected(mine=True)  # whoever takes the lease puts the row right
        return Expected(mine=False, drain=drain if drain.lives(now_ms) else None)

    def take(self, drain: DrainLease, now_ms: int) -> LeaseTaken:
        item: dict[str, Any] = {
            **_key(drain),
            "h": {"S": drain.holder},
            "f": {"N": str(drain.since_ms)},
            "u": {"N": str(drain.until_ms)},
            "l": {"BOOL": drain.slow},
        }
        with translated():
            try:
                answer: Any = self.client.put_item(
                    TableName=self.table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(p) OR u <= :now",
                    ExpressionAttributeValues={":now": {"N": str(now_ms)}},
                    ReturnValues="ALL_OLD",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except refusals() as error:
                if not condition_failed(error):
                    raise
                return LeaseTaken(False, self._other(drain, error))
        old = answer.get("Attributes")
        died = list(readable([old] if old and _is_held(old) else [], partial(_drain, drain.tenant), self.tell))
        return LeaseTaken(True, died[0] if died else None)

    def _other(self, drain: DrainLease, error: ClientError) -> DrainLease | None:
        """It comes with the refusal; where it does not, it is read, and may be gone by then."""
        item: Any = error.response.get("Item") or self._item(drain.tenant, drain.target_id)
        try:
            return _drain(drain.tenant, item) if item and _is_held(item) else None
        except UnreadableRow as unreadable:
            self.tell(unreadable)
            self._drop(item)
            return None

    def _drop(self, item: Any) -> None:
        """A lease that cannot be read is nobody's, and would keep the target from being served for ever."""
        until: Any = item.get("u")
        more: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(u)"}
        if until is not None:
            more = {"ConditionExpression": "u = :u", "ExpressionAttributeValues": {":u": until}}
        key = {"p": item["p"], "s": item["s"]}
        applied(partial(self.client.delete_item, TableName=self.table, Key=key, **more))

    def _item(self, tenant: str, target_id: str) -> Any:
        key = keys.key(keys.drains(tenant), target_id)
        return self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True).get("Item")

    def renew(self, drain: DrainLease) -> bool:
        return self._update(drain, "SET u = :until", {":until": {"N": str(drain.until_ms)}})

    def ask(self, drain: DrainLease) -> bool:
        return self._update(drain, "SET a = :asked", {":asked": {"BOOL": True}})

    def end(self, drain: DrainLease) -> bool:
        with translated():
            try:
                answer: Any = self.client.delete_item(
                    TableName=self.table,
                    Key=_key(drain),
                    ConditionExpression="h = :holder",
                    ExpressionAttributeValues={":holder": {"S": drain.holder}},
                    ReturnValues="ALL_OLD",
                )
            except refusals() as error:
                if not condition_failed(error):
                    raise
                return False
        return "a" in answer.get("Attributes", {})

    def of(self, tenant: str) -> Sequence[DrainLease]:
        items = query_all(self.client, self.table, keys.drains(tenant))
        return list(readable(filter(_is_held, items), partial(_drain, tenant), self.tell))

    def _update(self, drain: DrainLease, expression: str, values: dict[str, Any]) -> bool:
        return applied(
            partial(
                self.client.update_item,
                TableName=self.table,
                Key=_key(drain),
                UpdateExpression=expression,
                ConditionExpression="h = :holder",
                ExpressionAttributeValues={**values, ":holder": {"S": drain.holder}},
            )
        )


@dataclass(frozen=True, slots=True)
class DynamoLine:
    client: DynamoDBClient
    table: str
    tell: Tell = unheard

    def wait(self, waiting: WaitingTarget) -> None:
        with translated():
            self.client.update_item(
                TableName=self.table,
                Key=keys.key(keys.line(waiting.tenant), waiting.target_id),
                UpdateExpression="SET f = if_not_exists(f, :now), n = :now, l = :slow",
                ExpressionAttributeValues={
                    ":now": {"N": str(waiting.since_ms)},
                    ":slow": {"BOOL": waiting.slow},
                },
            )

    def leave(self, tenant: str, target_id: str) -> None:
        with translated():
            self.client.delete_item(TableName=self.table, Key=keys.key(keys.line(tenant), target_id))

    def waiting(self, tenant: str) -> Sequence[WaitingTarget]:
        items = query_all(self.client, self.table, keys.line(tenant))
        return list(readable(items, partial(_waiting, tenant), self.tell))


def _key(drain: DrainLease) -> dict[str, Any]:
    return keys.key(keys.drains(drain.tenant), drain.target_id)


def _is_held(item: Any) -> bool:
    return bool(item.get("h") != {"S": NOBODY})


def _drain(tenant: str, item: Any) -> DrainLease:
    with reading("lease", item["s"]["S"]):
        since_ms, until_ms = int(item["f"]["N"]), int(item["u"]["N"])
        return DrainLease(tenant, item["s"]["S"], item["h"]["S"], since_ms, until_ms, bool(item["l"]["BOOL"]))


def _waiting(tenant: str, item: Any) -> WaitingTarget:
    with reading("place in line", item["s"]["S"]):
        seen_ms = int(item.get("n", {"N": "0"})["N"])  # without, it is from before there was one
        return WaitingTarget(tenant, item["s"]["S"], int(item["f"]["N"]), bool(item["l"]["BOOL"]), seen_ms)
