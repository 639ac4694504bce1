"""Every adapter of the ports: in memory, on moto, and, by boto3 and by the lean wire, on the embedded stack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from millrace.ledger.adapters.dynamodb.claims import DynamoClaims
from millrace.ledger.adapters.dynamodb.log import DynamoLog
from millrace.ledger.adapters.dynamodb.room import DynamoBoard, DynamoRoom
from millrace.ledger.adapters.dynamodb.rounds import DynamoRounds
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState, in_turn
from millrace.ledger.adapters.memory_room import MemoryBoard, MemoryRoom
from millrace.ledger.adapters.memory_rounds import MemoryRounds
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.ports import Board, Claims, Log, Rounds, State, Together, WaitingRoom
from millrace.sync.adapters.dynamodb import DynamoIndex
from millrace.sync.adapters.memory import MemoryIndex
from millrace.sync.ports import PartitionIndex
from tests.support.aws_tables import client_for, client_of, create_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class Adapters:
    kind: str
    claims: Claims
    log: Log
    state: State
    index: PartitionIndex
    together: Together
    room: WaitingRoom
    board: Board
    rounds: Rounds


@dataclass(frozen=True)
class SelectByQueries:
    """A client of moto, which finds nothing by a `SELECT`: one query for each partition that it names."""

    client: DynamoDBClient

    def execute_statement(self, *, Statement: str, Parameters: list[Any], ConsistentRead: bool) -> dict[str, Any]:  # noqa: N803
        table, condition = Statement.removeprefix('SELECT * FROM "').split('" WHERE ')
        assert condition == f"l IN [{', '.join('?' for _ in Parameters)}]"
        found = [
            item
            for partition in Parameters
            for item in self.client.query(
                TableName=table,
                KeyConditionExpression="l = :l",
                ExpressionAttributeValues={":l": partition},
                ConsistentRead=ConsistentRead,
            )["Items"]
        ]
        return {"Items": found}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


def on_dynamodb(kind: str, client: DynamoDBClient, together: Together) -> Adapters:
    tables = create_tables(client)
    selecting: Any = SelectByQueries(tables.client) if kind == "moto" else tables.client
    return Adapters(
        kind,
        DynamoClaims(tables.client, tables.claims, together),
        DynamoLog(tables.client, tables.log, together),
        DynamoState(tables.client, tables.state),
        DynamoIndex(tables.client, tables.index, together),
        together,
        DynamoRoom(selecting, tables.waiting, together),
        DynamoBoard(tables.client, tables.waiting),
        DynamoRounds(tables.client, tables.state, tables.waiting),
    )


@pytest.fixture(params=["memory", "moto", "embedded", "lean"])
def adapters(request: pytest.FixtureRequest) -> Iterator[Adapters]:
    yield from _adapters(request)


@pytest.fixture(params=["memory", "embedded", "lean"])
def batching(request: pytest.FixtureRequest) -> Iterator[Adapters]:
    """Where several ids are claimed in one call: moto takes no parameters in INSERT."""
    yield from _adapters(request)


def _adapters(request: pytest.FixtureRequest) -> Iterator[Adapters]:
    if request.param == "memory":
        state = MemoryState()
        yield Adapters(
            "memory",
            MemoryClaims(),
            MemoryLog(),
            state,
            MemoryIndex(),
            in_turn,
            MemoryRoom(),
            MemoryBoard(),
            MemoryRounds(state),
        )
    elif request.param == "moto":
        with mock_aws():
            yield on_dynamodb("moto", client_for(None), in_turn)
    else:
        yield on_dynamodb(request.param, client_of(request), Threads())
