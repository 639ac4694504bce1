"""Counters, checkpoints, projections and sessions of the realtime contract, in memory and where they are stored."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from moto import mock_aws

from millrace.ledger.adapters.dynamodb.projections import DynamoProjections
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.memory import MemoryProjections, MemoryState, in_turn
from millrace.ledger.domain.names import realtime_ledger
from millrace.ledger.ports import Projection, Projections, State
from millrace.realtime.adapters.dynamodb import DynamoRealtime
from millrace.realtime.adapters.memory import MemoryRealtime
from millrace.realtime.ports import Watermark
from tests.support.aws_tables import client_for, client_of, create_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SESSION = realtime_ledger("t", "call-1")


@dataclass(frozen=True)
class Stores:
    realtime: MemoryRealtime | DynamoRealtime
    state: State
    projections: Projections


@pytest.fixture(params=["memory", "moto", "embedded", "lean"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "memory":
        state = MemoryState()
        yield Stores(MemoryRealtime(state), state, MemoryProjections())
    elif request.param == "moto":
        with mock_aws():
            yield on_dynamodb(client_for(None))
    else:
        yield on_dynamodb(client_of(request))


def on_dynamodb(client: DynamoDBClient) -> Stores:
    tables = create_tables(client)
    return Stores(
        DynamoRealtime(tables.client, tables.state, in_turn),
        DynamoState(tables.client, tables.state),
        DynamoProjections(tables.client, tables.state, "transcript", lambda: uuid4().hex),
    )


def test_counters_add_up_per_tenant(stores: Stores) -> None:
    for counts in ({"invalid": 2, "deduped": 0}, {"invalid": 1, "deduped": 5}, {"invalid": 0}):
        stores.realtime.add("t", counts)
    assert stores.realtime.read("t") == {"invalid": 3, "deduped": 5}
    assert stores.realtime.read("other") == {}


def place(instant: int, event_id: str, sequence: int | None = None) -> Watermark:
    return Watermark(f"ts-{instant}", instant, event_id, sequence)


def test_r7_a_checkpoint_goes_forward_and_never_back(stores: Stores) -> None:
    moves = [
        (place(5, "b"), True),
        (place(5, "b"), True),
        (place(5, "a"), False),
        (place(4, "z"), False),
        (place(5, "c"), True),
        (place(6, "a"), True),
    ]
    for to, applied in moves:
        assert stores.realtime.move(SESSION, "ui", to) == applied
    assert stores.realtime.get(SESSION, "ui") == place(6, "a")


def test_r7_where_both_know_a_sequence_it_decides(stores: Stores) -> None:
    for to, applied in [
        (place(5, "b", 10), True),
        (place(9, "z", 9), False),
        (place(1, "a", 11), True),
        (place(0, "a"), False),
        (place(2, "a"), True),
        (place(3, "a", 1), False),
        (place(3, "a", 12), True),
    ]:
        assert stores.realtime.move(SESSION, "ui", to) == applied, to
    assert stores.realtime.get(SESSION, "ui") == place(3, "a", 12)
    assert stores.realtime.move(SESSION, "ui", place(4, "a"))
    assert stores.realtime.get(SESSION, "ui") == place(4, "a", 12), "a known sequence is kept"


def test_checkpoints_are_per_session_and_consumer(stores: Stores) -> None:
    stores.realtime.move(SESSION, "ui", place(5, "b"))
    assert stores.realtime.get(SESSION, "billing") is None
    assert stores.realtime.get(realtime_ledger("t", "call-2"), "ui") is None


def test_a_projection_is_kept_only_over_the_one_it_was_made_from(stores: Stores) -> None:
    nothing = stores.projections.load(SESSION)
    assert nothing == Projection(0, {})
    assert stores.projections.store(SESSION, Projection(7, {"u": {"text": "ü"}}), nothing)
    assert not stores.projections.store(SESSION, Projection(9, {}), nothing)
    first = stores.projections.load(SESSION)
    assert first == Projection(7, {"u": {"text": "ü"}})
    assert stores.projections.store(SESSION, Projection(7, {}, lost_through=3), first), "at the same position"
    assert not stores.projections.store(SESSION, Projection(9, {}), first), "the position alone is not enough"
    assert stores.projections.load(SESSION) == Projection(7, {}, lost_through=3)
    assert stores.projections.store(SESSION, Projection(9, {}), stores.projections.load(SESSION))
    assert stores.projections.load(SESSION) == Projection(9, {})


def test_r8_a_projection_of_any_length_is_kept(stores: Stores) -> None:
    """It grows over what one item holds, is stored anew, and shrinks again."""
    rng = random.Random(1)
    other = realtime_ledger("t", "call-2")
    assert stores.projections.store(other, Projection(1, {"small": 1}), stores.projections.load(other))
    for through, megabytes in enumerate((0, 1, 3, 2, 0), 1):
        long = Projection(through, {"text": rng.randbytes(megabytes * 500_000).hex()})
        assert stores.projections.store(SESSION, long, stores.projections.load(SESSION))
        assert stores.projections.load(SESSION) == long
    assert stores.projections.load(other) == Projection(1, {"small": 1})


def test_a_tenants_sessions_are_found_and_no_others(stores: Stores) -> None:
    mine = [realtime_ledger("t", f"s{n}") for n in range(30)]
    for ledger in [*mine, realtime_ledger("t2", "s1"), realtime_ledger("t#x", "s1")]:
        stores.state.register(ledger)
    assert sorted(ledger.name for ledger in stores.realtime.of_tenant("t")) == sorted(ledger.name for ledger in mine)
