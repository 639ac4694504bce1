"""What a tenant has used of its rate: the same on every adapter."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest
from moto import mock_aws

from millrace.ledger.adapters.dynamodb.meter import DynamoMeter
from millrace.ledger.adapters.memory import MemoryMeter
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.ports import Meter
from tests.support.aws_tables import client_for, client_of, create_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

NOW, LATEST = 10**15, 10**15 + 10_000


@pytest.fixture(params=["memory", "moto", "embedded", "lean"])
def meter(request: pytest.FixtureRequest) -> Iterator[Meter]:
    if request.param == "memory":
        yield MemoryMeter()
    elif request.param == "moto":
        with mock_aws():
            yield on_dynamodb(client_for(None))
    else:
        yield on_dynamodb(client_of(request))


def on_dynamodb(client: DynamoDBClient) -> DynamoMeter:
    tables = create_tables(client)
    return DynamoMeter(tables.client, tables.state)


def test_what_is_used_adds_up_from_now_on_and_stops_at_the_latest(meter: Meter) -> None:
    assert meter.add("t", 100, NOW, LATEST) == NOW + 100
    assert meter.add("t", 50, NOW + 40, LATEST) == NOW + 150
    assert meter.add("u", 7, NOW, LATEST) == NOW + 7, "another tenant has its own"
    assert meter.add("t", 10, NOW + 1_000, LATEST) == NOW + 1_010, "what is past does not count"
    assert meter.add("t", 8_000, NOW + 1_000, LATEST) == NOW + 9_010
    assert meter.add("t", 8_000, NOW + 1_000, LATEST) == LATEST
    assert meter.add("t", 8_000, NOW + 1_000, LATEST) == LATEST
    assert meter.add("t", 1, LATEST + 1, LATEST + 100) == LATEST + 2


def test_many_instances_add_at_once_on_the_embedded_stack(endpoint: str) -> None:
    meter = on_dynamodb(client_for(endpoint))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: _add(partial(meter.add, "t", 5, NOW, LATEST)), range(40)))
    assert meter.add("t", 0, NOW, LATEST) == NOW + 200


def _add(add: partial[int]) -> int:
    return add()


def test_a_row_that_cannot_be_read_is_storage_that_does_not_answer(endpoint: str) -> None:
    """So it limits nobody."""
    meter = on_dynamodb(client_for(endpoint))
    item = {"p": {"S": "rate#t"}, "s": {"S": "requests"}, "t": {"S": "torn"}}
    meter.client.put_item(TableName=meter.table, Item=item)
    with pytest.raises(Unavailable):
        meter.add("t", 1, NOW, LATEST)
