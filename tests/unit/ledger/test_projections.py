"""R8: a projection in pieces is there whole, the old or the new one, whenever its writers die and however they meet."""

from __future__ import annotations

import itertools
import json
import random
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from millrace.ledger.adapters.dynamodb.projections import DynamoProjections
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import realtime_ledger
from millrace.ledger.ports import Projection
from tests.support.table import Table

SESSION = realtime_ledger("t", "call-1")
WRITES = ("put_item", "delete_item")


class Killed(BaseException):
    """The process ended here."""


class Client:
    """One process's client: it may die before or after a chosen write, lose answers, and let others in between."""

    def __init__(self, table: Table, die_at: int | None = None, *, after: bool = False) -> None:
        self.table, self.die_at, self.after, self.writes = table, die_at, after, 0
        self.between: Callable[[str], None] = lambda _: None

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.table, name)

        def made(**request: Any) -> Any:
            self.between(name)
            if name not in WRITES:
                return call(**request)
            self.writes += 1
            if self.writes == self.die_at and not self.after:
                raise Killed
            answer = call(**request)
            if self.writes == self.die_at:
                raise Killed
            return answer

        return made


NUMBERS = itertools.count()


def projections(client: Any, piece_bytes: int = 100) -> DynamoProjections:
    return DynamoProjections(client, "state", "transcript", lambda: f"{next(NUMBERS):08x}", piece_bytes)


def long(through: int, size: int = 400) -> Projection:
    return Projection(through, {"text": random.Random(through).randbytes(size).hex()})


def pieces(table: Table) -> list[str]:
    return sorted(sort for _, sort in table.items if sort != "projection")


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after it"])
@pytest.mark.parametrize("sizes", [(400, 500), (400, 1), (1, 400)], ids=["long to long", "to short", "to long"])
def test_a_writer_that_dies_at_any_write_leaves_the_old_one_or_the_new_one(
    sizes: tuple[int, int], *, after: bool
) -> None:
    old, new = long(1, sizes[0]), long(2, sizes[1])
    deaths = 0
    for die_at in itertools.count(1):
        table = Table()
        assert projections(table).store(SESSION, old, Projection(0, {}))
        mortal = projections(Client(table, die_at, after=after))
        stored = mortal.load(SESSION)
        try:
            assert mortal.store(SESSION, new, stored)
        except Killed:
            deaths += 1
            assert projections(table).load(SESSION) in (old, new)
            last = long(3)
            assert projections(table).store(SESSION, last, projections(table).load(SESSION))
            assert projections(table).load(SESSION) == last
            assert len({sort.split("#")[1] for sort in pieces(table)}) == 1, "what the dead one left is cleared away"
        else:
            assert projections(table).load(SESSION) == new
            break
    assert deaths > 1


def test_a_writer_whose_answer_was_lost_knows_its_own_head_again() -> None:
    """The SDK asks again by itself; the second answer says that the condition does not hold."""
    table = Table()

    class AsksTwice(Client):
        def put_item(self, **request: Any) -> Any:
            if "ConditionExpression" in request:
                table.put_item(**request)
            return table.put_item(**request)

    assert projections(AsksTwice(table)).store(SESSION, long(1), Projection(0, {}))
    assert projections(table).load(SESSION) == long(1)


def test_whoever_loses_leaves_nothing_behind() -> None:
    table = Table()
    late, nothing = projections(table), Projection(0, {})
    assert projections(table).store(SESSION, long(1), nothing)
    kept = pieces(table)
    assert not late.store(SESSION, long(2), nothing)
    assert (late.load(SESSION), pieces(table)) == (long(1), kept)


def test_a_winner_clears_nothing_that_a_later_writer_needs() -> None:
    """Between its list of leftovers and its last deletion, others store theirs over its own."""
    table = Table()
    assert projections(table).store(SESSION, long(1), Projection(0, {}))
    client = Client(table)

    def other(name: str) -> None:
        if name == "delete_item":
            client.between = lambda _: None
            assert projections(table).store(SESSION, long(9, 700), projections(table).load(SESSION))

    client.between = other
    assert projections(client).store(SESSION, long(2), projections(table).load(SESSION))
    assert projections(table).load(SESSION) == long(9, 700)


def test_a_reader_whose_pieces_are_cleared_away_reads_the_new_ones() -> None:
    table = Table()
    assert projections(table).store(SESSION, long(1), Projection(0, {}))
    client = Client(table)

    def other(name: str) -> None:
        if name == "query":
            client.between = lambda _: None
            assert projections(table).store(SESSION, long(2), projections(table).load(SESSION))

    client.between = other
    assert projections(client).load(SESSION) == long(2)


def test_a_missing_piece_is_never_a_shorter_projection() -> None:
    table = Table()
    assert projections(table).store(SESSION, long(1), Projection(0, {}))
    del table.items[f"transcript#{SESSION.name}", pieces(table)[1]]
    with pytest.raises(Unavailable, match="missing"):
        projections(table).load(SESSION)


def test_clearing_away_is_best_effort() -> None:
    table = Table()
    assert projections(table).store(SESSION, long(1), Projection(0, {}))

    class KeepsAll(Client):
        def delete_item(self, **_: Any) -> Any:
            raise EndpointConnectionError(endpoint_url="x")

    assert projections(KeepsAll(table)).store(SESSION, long(2), projections(table).load(SESSION))
    assert projections(table).load(SESSION) == long(2)


def test_storage_that_fails_is_unavailable_and_changes_nothing() -> None:
    table = Table()
    assert projections(table).store(SESSION, long(1), Projection(0, {}))

    class Fails(Client):
        def put_item(self, **_: Any) -> Any:
            raise ClientError({"Error": {"Code": "InternalServerError"}}, "PutItem")

    with pytest.raises(Unavailable):
        projections(Fails(table)).store(SESSION, long(2), projections(table).load(SESSION))
    assert projections(table).load(SESSION) == long(1)


def test_a_projection_stored_before_they_had_names_is_read_and_replaced_once() -> None:
    table = Table()
    packed = zlib.compress(json.dumps({"u": 1}).encode(), 1)
    key = {"p": {"S": f"transcript#{SESSION.name}"}, "s": {"S": "projection"}}
    table.put_item(Item={**key, "v": {"N": "7"}, "d": {"B": packed}})
    old = projections(table).load(SESSION)
    assert old == Projection(7, {"u": 1})
    assert not projections(table).store(SESSION, long(9), Projection(0, {}))
    assert projections(table).store(SESSION, long(9), old)
    assert not projections(table).store(SESSION, long(10), old)
    assert projections(table).load(SESSION) == long(9)
