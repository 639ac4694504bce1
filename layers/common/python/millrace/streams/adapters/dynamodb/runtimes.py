"""Runtimes in DynamoDB: what each client negotiated, and the grants, in one partition of the state table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import applied, translated
from millrace.ledger.adapters.dynamodb.state import query_all, registered
from millrace.ledger.domain.names import Ledger, join_key
from millrace.ledger.ports import Together
from millrace.streams.domain.grant import BreakGlassGrant
from millrace.streams.domain.negotiate import Negotiated
from millrace.streams.ports import RuntimeState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

GRANT = "grant#"
CLIENT = "client#"
"""Before every grant, so that a query for the grants that end later meets no session."""
CLIENTS_END = "client$"
NEGOTIATED = "~negotiated"
"""What earlier releases stored for the whole runtime, after every grant. Nobody writes it any more."""


@dataclass(frozen=True, slots=True)
class DynamoRuntimes:
    client: DynamoDBClient
    table: str
    together: Together
    clock: Callable[[], int]

    def load(self, tenant: str, runtime_id: str, client_id: str) -> RuntimeState:
        calls: list[Callable[[], Any]] = [
            partial(self._item, tenant, runtime_id, CLIENT + client_id),
            partial(self._since, tenant, runtime_id, self.clock()),
        ]
        own, (whole, grants) = self.together(calls)
        return RuntimeState(own or whole, grants)

    def session(self, tenant: str, runtime_id: str, client_id: str) -> Negotiated | None:
        own = self._item(tenant, runtime_id, CLIENT + client_id)
        return own or self._item(tenant, runtime_id, NEGOTIATED)

    def negotiate(self, tenant: str, runtime_id: str, client_id: str, negotiated: Negotiated) -> None:
        self._put(tenant, runtime_id, CLIENT + client_id, negotiated.stored())

    def negotiated_after(
        self, tenant: str, runtime_id: str, client_id: str, limit: int
    ) -> Sequence[tuple[str, Negotiated]]:
        with translated():
            answer = self.client.query(
                TableName=self.table,
                ConsistentRead=True,
                KeyConditionExpression="p = :p AND s BETWEEN :low AND :high",
                ExpressionAttributeValues={
                    ":p": {"S": _runtime(tenant, runtime_id)},
                    ":low": {"S": CLIENT + client_id + ("\x00" if client_id else "")},
                    ":high": {"S": CLIENTS_END},
                },
                Limit=limit,
            )
        return [
            (item["s"]["S"].removeprefix(CLIENT), Negotiated.of(json.loads(item["d"]["S"]))) for item in answer["Items"]
        ]

    def grants(self, tenant: str, runtime_id: str) -> Sequence[BreakGlassGrant]:
        return self._since(tenant, runtime_id, 0)[1]

    def _item(self, tenant: str, runtime_id: str, sort: str) -> Negotiated | None:
        key = {"p": {"S": _runtime(tenant, runtime_id)}, "s": {"S": sort}}
        with translated():
            answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        return Negotiated.of(json.loads(answer["Item"]["d"]["S"])) if "Item" in answer else None

    def _since(self, tenant: str, runtime_id: str, ms: int) -> tuple[Negotiated | None, Sequence[BreakGlassGrant]]:
        """The grants that end after a time, and what was negotiated for the whole runtime."""
        whole, grants = None, []
        items = query_all(self.client, self.table, _runtime(tenant, runtime_id), since=f"{GRANT}{ms:015d}")
        for item in items:
            content = json.loads(item["d"]["S"])
            if item["s"]["S"] == NEGOTIATED:
                whole = Negotiated.of(content)
            else:
                grants.append(BreakGlassGrant.of(content))
        return whole, grants

    def put_grant(self, tenant: str, grant: BreakGlassGrant) -> None:
        self._put(tenant, grant.runtime_id, f"{GRANT}{grant.expires_ms:015d}#{grant.id}", grant.stored())

    def mark(self, stream: Ledger, subscription: str) -> bool:
        item = _degraded(stream, subscription)
        return applied(
            lambda: self.client.put_item(TableName=self.table, Item=item, ConditionExpression="attribute_not_exists(p)")
        )

    def is_marked(self, stream: Ledger, subscription: str) -> bool:
        with translated():
            answer = self.client.get_item(
                TableName=self.table, Key=_degraded(stream, subscription), ConsistentRead=True
            )
        return "Item" in answer

    def degraded_after(self, stream: Ledger, subscription: str, limit: int) -> Sequence[str]:
        with translated():
            answer = self.client.query(
                TableName=self.table,
                ConsistentRead=True,
                KeyConditionExpression="p = :p AND s > :s",
                ExpressionAttributeValues={":p": _degraded(stream, "")["p"], ":s": {"S": subscription or " "}},
                Limit=limit,
            )
        return [item["s"]["S"] for item in answer["Items"]]

    def of_runtime(self, tenant: str, runtime_id: str) -> Sequence[Ledger]:
        prefix = join_key("streams", tenant, runtime_id) + "#"
        return [Ledger(name, name) for name in sorted(registered(self.client, self.table, prefix, self.together))]

    def _put(self, tenant: str, runtime_id: str, sort: str, content: Any) -> None:
        item = {
            "p": {"S": _runtime(tenant, runtime_id)},
            "s": {"S": sort},
            "d": {"S": json.dumps(content, separators=(",", ":"))},
        }
        with translated():
            self.client.put_item(TableName=self.table, Item=item)


def _runtime(tenant: str, runtime_id: str) -> str:
    return join_key("runtime", tenant, runtime_id)


def _degraded(stream: Ledger, subscription: str) -> dict[str, Any]:
    return {"p": {"S": f"degraded#{stream.name}"}, "s": {"S": subscription}}
