"""Batch reads and writes in DynamoDB. What DynamoDB left unprocessed is sent again."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from millrace.ledger.adapters.aws_errors import translated
from millrace.ledger.domain.errors import Throttled
from millrace.ledger.ports import Together

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

GET_KEYS = 100
WRITE_ITEMS = 25

Item = Mapping[str, Any]
_RANDOM = random.SystemRandom()


def get_all(client: DynamoDBClient, table: str, keys: Sequence[Item], together: Together, tries: int = 1) -> list[Item]:
    """Strongly consistent reads, 100 keys a call, calls side by side. What stays unprocessed is left out."""
    groups = [keys[start : start + GET_KEYS] for start in range(0, len(keys), GET_KEYS)]
    answers = together([partial(_get_group, client, table, group, tries) for group in groups])
    return [item for answer in answers for item in answer]


def _get_group(client: DynamoDBClient, table: str, keys: Sequence[Item], tries: int) -> list[Item]:
    items: list[Item] = []
    pending: Any = {table: {"Keys": list(keys), "ConsistentRead": True}}
    for attempt in range(tries):
        if attempt:
            back_off(attempt)
        with translated():
            answer = client.batch_get_item(RequestItems=pending)
        items.extend(answer["Responses"].get(table, []))
        pending = answer.get("UnprocessedKeys")
        if not pending:
            break
    return items


def put_all(client: DynamoDBClient, table: str, items: Sequence[Item], together: Together) -> None:
    """Returns when every item is stored; raises `Throttled` if storage would not take them all."""
    _write_all(client, table, [{"PutRequest": {"Item": item}} for item in items], together)


def delete_all(client: DynamoDBClient, table: str, keys: Sequence[Item], together: Together) -> None:
    """Returns when every item is gone. Never for the log or the claims."""
    _write_all(client, table, [{"DeleteRequest": {"Key": key}} for key in keys], together)


def _write_all(client: DynamoDBClient, table: str, requests: Sequence[Any], together: Together) -> None:
    groups = [requests[start : start + WRITE_ITEMS] for start in range(0, len(requests), WRITE_ITEMS)]
    if groups:
        together([partial(_write_group, client, table, group) for group in groups])


def _write_group(client: DynamoDBClient, table: str, requests: Sequence[Any]) -> None:
    pending: Any = {table: list(requests)}
    for attempt in range(8):
        if attempt:
            back_off(attempt)
        with translated():
            pending = client.batch_write_item(RequestItems=pending).get("UnprocessedItems")
        if not pending:
            return
    raise Throttled("Storage did not take every row.")


def back_off(attempt: int) -> None:
    """Full jitter, at most about a second. From the system's randomness: a restored snapshot must not repeat itself."""
    time.sleep(_RANDOM.uniform(0, min(1.0, 0.02 * 2**attempt)))
