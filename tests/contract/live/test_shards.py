"""Shards of crowds: their number, how far each is served and who holds it, in memory and where it is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pytest
from moto import mock_aws

from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.memory import MemoryState, in_turn
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import State
from millrace.live.adapters.crew import BUNDLE, LambdaCrew, shares_of
from millrace.live.adapters.dynamodb.shards import DynamoShards
from millrace.live.adapters.memory_shards import MemoryCrew, MemoryShards
from millrace.live.domain.shards import Shard
from millrace.live.ports import Crew, ShardProgress, Shards, Share
from tests.support.aws_tables import client_for, client_of, create_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LEDGER, OTHER = Ledger.of("sync", "default", "demo"), Ledger.of("sync", "default", "other")
NOW = 1_800_000_000_000
FIRST, SECOND = Shard(0, 4), Shard(1, 4)


@dataclass(frozen=True)
class Stores:
    shards: Shards
    state: State


@pytest.fixture(params=["memory", "moto", "embedded", "lean"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "memory":
        state = MemoryState()
        yield Stores(MemoryShards(state), state)
    elif request.param == "moto":
        with mock_aws():
            yield on_dynamodb(client_for(None))
    else:
        yield on_dynamodb(client_of(request))


def on_dynamodb(client: DynamoDBClient) -> Stores:
    tables = create_tables(client)
    shards = DynamoShards(tables.client, tables.state, tables.connections, lambda: NOW)
    return Stores(shards, DynamoState(tables.client, tables.state))


def test_a_crowd_is_split_only_from_what_it_was(stores: Stores) -> None:
    shards, state = stores.shards, stores.state
    assert state.marks(LEDGER).shards == 1
    assert not shards.split(LEDGER, 2, 4)
    assert shards.split(LEDGER, 1, 8)
    assert shards.split(LEDGER, 1, 8), "again is fine"
    assert not shards.split(LEDGER, 1, 16)
    assert (state.marks(LEDGER).shards, state.marks(OTHER).shards) == (8, 1)
    assert shards.split(LEDGER, 8, 1)
    assert state.marks(LEDGER).shards == 1
    assert shards.split(LEDGER, 1, 2)


def test_a_split_leaves_the_cursor_as_it_is_and_a_cursor_the_split(stores: Stores) -> None:
    shards, state = stores.shards, stores.state
    assert shards.split(LEDGER, 1, 2)
    assert (state.marks(LEDGER).cursors, state.marks(LEDGER).hint) == ({}, 0), "a ledger that never had a cursor"
    assert state.move_cursor(LEDGER, "fan_out", 0, 7)
    assert shards.split(LEDGER, 2, 4)
    marks = state.marks(LEDGER)
    assert (marks.cursors, marks.shards) == ({"fan_out": 7}, 4)


def test_one_at_a_time_holds_a_shard_until_it_lets_go_or_its_time_is_over(stores: Stores) -> None:
    shards = stores.shards
    assert shards.take(LEDGER, FIRST, "a", NOW, NOW + 10) == ShardProgress(0, NOW + 10)
    assert shards.take(LEDGER, FIRST, "a", NOW + 1, NOW + 11) == ShardProgress(0, NOW + 11), "again is fine"
    assert shards.take(LEDGER, FIRST, "b", NOW + 1, NOW + 20) is None
    assert shards.take(LEDGER, SECOND, "b", NOW + 1, NOW + 20) == ShardProgress(0, NOW + 20), "another shard"
    assert shards.take(LEDGER, Shard(0, 8), "b", NOW + 1, NOW + 20), "the first of eight is not the first of four"
    assert shards.take(OTHER, FIRST, "b", NOW + 1, NOW + 20), "nor is that of another ledger"
    assert shards.take(LEDGER, FIRST, "b", NOW + 11, NOW + 30) == ShardProgress(0, NOW + 30), "its time was over"
    assert shards.move(LEDGER, FIRST, "b", ShardProgress(5, 0, 3))
    assert shards.take(LEDGER, FIRST, "c", NOW + 12, NOW + 40) == ShardProgress(5, NOW + 40, 3), "it was let go"


def test_only_who_took_a_shard_last_moves_its_place(stores: Stores) -> None:
    shards = stores.shards
    assert not shards.move(LEDGER, FIRST, "a", ShardProgress(5, 0, 1)), "nobody took it"
    assert shards.take(LEDGER, FIRST, "a", NOW, NOW + 10)
    assert shards.move(LEDGER, FIRST, "a", ShardProgress(5, NOW + 20, 2))
    assert shards.move(LEDGER, FIRST, "a", ShardProgress(5, NOW + 20, 2)), "again is fine"
    assert shards.take(LEDGER, FIRST, "b", NOW + 20, NOW + 30)
    assert not shards.move(LEDGER, FIRST, "a", ShardProgress(9, 0, 2))
    assert shards.progress(LEDGER, 4, 0, 3) == {0: ShardProgress(5, NOW + 30, 2)}


def test_progress_is_that_of_the_shards_asked_for(stores: Stores) -> None:
    shards = stores.shards
    for number in (0, 3, 10, 11, 63):
        assert shards.take(LEDGER, Shard(number, 64), "a", NOW, NOW + 1)
        assert shards.move(LEDGER, Shard(number, 64), "a", ShardProgress(number + 1, 0, 9))
    assert set(shards.progress(LEDGER, 64, 0, 63)) == {0, 3, 10, 11, 63}
    assert shards.progress(LEDGER, 64, 3, 10) == {3: ShardProgress(4, 0, 9), 10: ShardProgress(11, 0, 9)}
    assert shards.progress(LEDGER, 32, 0, 31) == shards.progress(OTHER, 64, 0, 63) == {}


class Calls:
    """As much of Lambda as a crew needs: it starts what it is asked to, and tells nothing of it."""

    def __init__(self) -> None:
        self.started: list[list[Share]] = []

    def invoke(self, FunctionName: str, InvocationType: str, Payload: bytes) -> Any:  # noqa: N803 - boto3's names
        assert (FunctionName, InvocationType) == ("hub-crowd", "Event")
        self.started.append(shares_of(json.loads(Payload)))
        return {"StatusCode": 202}


@pytest.mark.parametrize("count", [1, 2, BUNDLE, 2 * BUNDLE, 1_024])
def test_a_crew_is_called_for_each_share_once(count: int) -> None:
    wanted = [Share(LEDGER.name, Shard(number, count), number + 7) for number in range(count)]
    calls, memory = Calls(), MemoryCrew()
    crew = LambdaCrew(lambda: cast("Any", calls), "hub-crowd", in_turn)
    for one in cast("list[Crew]", [crew, memory]):
        one.call(wanted)
    assert len(calls.started) <= max(BUNDLE, count / BUNDLE), "a few calls, and each of them makes a few more"
    bundles = list(calls.started)
    calls.started.clear()
    served = [crew.spread(bundle) for bundle in bundles]
    served += [crew.spread(bundle) for bundle in list(calls.started)]
    assert sorted(served, key=lambda share: share.shard.number) == wanted == memory.called
