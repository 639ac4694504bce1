"""Claims in DynamoDB: one item per id, put if absent, never deleted, without TTL."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import THROTTLES, refusal_of, translated
from millrace.ledger.adapters.dynamodb.batch import get_all
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger, join_key
from millrace.ledger.ports import Claim, Claimed, Together

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

STATEMENTS = 25
LONG_ID = 256


@dataclass(frozen=True, slots=True)
class DynamoClaims:
    client: DynamoDBClient
    table: str
    together: Together

    def create(self, ledger: Ledger, ids: Sequence[str], seen: int) -> Claimed:
        if len(ids) == 1:
            return self._create_one(ledger, ids[0], seen)
        answers = self.together([partial(self._create_some, ledger, group, seen) for group in _chunks(ids, STATEMENTS)])
        return Claimed(
            frozenset().union(*(answer.created for answer in answers)),
            frozenset().union(*(answer.existed for answer in answers)),
            frozenset().union(*(answer.failed for answer in answers)),
        )

    def _create_one(self, ledger: Ledger, id_: str, seen: int) -> Claimed:
        one, none = frozenset([id_]), frozenset[str]()
        try:
            with translated():
                self.client.put_item(
                    TableName=self.table,
                    Item={"k": {"S": claim_key(ledger, id_)}, "l": {"S": ledger.name}, "s": {"N": str(seen)}},
                    ConditionExpression="attribute_not_exists(k)",
                )
        except Unavailable as error:
            if error.details.get("cause") == "ConditionalCheckFailedException":
                return Claimed(none, one, none)
            return Claimed(none, none, one)
        return Claimed(one, none, none)

    def _create_some(self, ledger: Ledger, ids: Sequence[str], seen: int) -> Claimed:
        """One call, one answer per id; errors sit inside the 200, so the SDK does not retry them."""
        statement = f"INSERT INTO \"{self.table}\" VALUE {{'k': ?, 'l': ?, 's': ?}}"
        statements: list[Any] = [
            {
                "Statement": statement,
                "Parameters": [{"S": claim_key(ledger, id_)}, {"S": ledger.name}, {"N": str(seen)}],
            }
            for id_ in ids
        ]
        try:
            with translated():
                responses = self.client.batch_execute_statement(Statements=statements)["Responses"]
        except Unavailable:
            return Claimed(frozenset(), frozenset(), frozenset(ids))
        created, existed, failed = set[str](), set[str](), set[str]()
        for id_, response in zip(ids, responses, strict=True):
            code = response.get("Error", {}).get("Code")
            if code is None:
                created.add(id_)
            elif code == "DuplicateItem":
                existed.add(id_)
            else:
                failed.add(id_)
                refused = refusal_of(str(code), str(response["Error"].get("Message", "")))
                if refused is not None:
                    raise refused
                if code not in THROTTLES and code not in {"InternalServerError", "TransactionConflict"}:
                    raise Unavailable("Storage refused a claim.", cause=code)
        return Claimed(frozenset(created), frozenset(existed), frozenset(failed))

    def get(self, ledger: Ledger, ids: Sequence[str]) -> Mapping[str, Claim]:
        by_key = {claim_key(ledger, id_): id_ for id_ in ids}
        keys = [{"k": {"S": key}} for key in by_key]
        items = get_all(self.client, self.table, keys, self.together, tries=6)
        found = {by_key[item["k"]["S"]]: Claim(item["l"]["S"], int(item["s"]["N"])) for item in items}
        if len(found) < len(by_key):
            raise Unavailable("Storage did not return every claim; send the same ids again.")
        return found

    def find(self, ledger: Ledger, id_: str) -> Claim | None:
        """One claim, if there is one; strongly consistent."""
        with translated():
            answer = self.client.get_item(
                TableName=self.table, Key={"k": {"S": claim_key(ledger, id_)}}, ConsistentRead=True
            )
        item = answer.get("Item")
        return None if item is None else Claim(item["l"]["S"], int(item["s"]["N"]))

    def advance(self, ledger: Ledger, ids: Sequence[str], seen: int) -> None:
        for id_ in ids:
            try:
                with translated():
                    self.client.update_item(
                        TableName=self.table,
                        Key={"k": {"S": claim_key(ledger, id_)}},
                        UpdateExpression="SET s = :seen",
                        ConditionExpression="l = :ledger AND s < :seen",
                        ExpressionAttributeValues={":seen": {"N": str(seen)}, ":ledger": {"S": ledger.name}},
                    )
            except Unavailable:
                continue  # another writer moved it further, or storage is busy: either way only time is lost


def claim_key(ledger: Ledger, id_: str) -> str:
    """A long id is hashed into the key; the page keeps it whole."""
    if len(id_.encode()) > LONG_ID:
        return f"{ledger.dedupe_scope}#sha256#{hashlib.sha256(id_.encode()).hexdigest()}"
    return f"{ledger.dedupe_scope}#id#{join_key(id_)}"


def _chunks(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]
