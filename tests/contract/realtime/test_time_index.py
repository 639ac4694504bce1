"""The time index, in memory and where it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from moto import mock_aws

from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.domain.instants import instant
from millrace.ledger.domain.names import realtime_ledger
from millrace.realtime.adapters.memory import MemoryTimes
from millrace.realtime.adapters.time_index import DynamoTimes
from millrace.realtime.domain.time_index import SECOND, BucketNote, LateEvents, TimeHit, TimeRow
from millrace.realtime.ports import TimeIndex
from tests.support.aws_tables import client_for, client_of, create_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SESSION, OTHER = realtime_ledger("t", "call-1"), realtime_ledger("t", "call-10")
FIRST, LAST = instant("0001-01-01T00:00:00Z"), instant("9999-12-31T23:59:59.999999999Z")


@pytest.fixture(params=["memory", "moto", "embedded", "lean"])
def times(request: pytest.FixtureRequest) -> Iterator[TimeIndex]:
    if request.param == "memory":
        yield MemoryTimes()
    elif request.param == "moto":
        with mock_aws():
            yield on_dynamodb(client_for(None))
    else:
        yield on_dynamodb(client_of(request))


def on_dynamodb(client: DynamoDBClient) -> DynamoTimes:
    tables = create_tables(client)
    return DynamoTimes(tables.client, tables.index, in_turn)


def row(*instants: int, position: int = 1, id_: str = "e") -> TimeRow:
    return TimeRow([TimeHit((at, f"{id_}{n}"), position + n, position, 10 + n) for n, at in enumerate(instants)])


def note(bucket: int, late: LateEvents | None = None) -> BucketNote:
    return BucketNote(bucket, frozenset({0, bucket}), (bucket, "é#%~"), late or LateEvents())


def test_notes_are_found_as_they_were_written_the_last_one_first(times: TimeIndex) -> None:
    few = LateEvents(2, (-5, "a"), (LAST, "b"), (((-5, "a"), 7), ((LAST, "b"), 2**53)))
    many = LateEvents(40, (FIRST, "x"), (9, "y"))
    written = [note(0), note(1, few), note(2, many), BucketNote(10, frozenset(), None, LateEvents())]
    assert times.note(SESSION) is None
    assert list(times.notes(SESSION, 0)) == []
    for one in written:
        times.write(SESSION, [], one)
        times.write(SESSION, [], one)
        assert times.note(SESSION) == one
    assert list(times.notes(SESSION, 0)) == written
    assert list(times.notes(SESSION, 2)) == written[2:]
    assert times.note(OTHER) is None


def test_rows_are_found_by_width_from_their_last_instant_on(times: TimeIndex) -> None:
    narrow = [row(FIRST), row(-2, -1), row(0, 5, position=9), row(0, 5, position=11), row(LAST, id_="ü" * 100)]
    wide = row(-3 * SECOND, 0)
    times.write(SESSION, [*reversed(narrow), wide], note(0))
    times.write(SESSION, narrow, note(0))
    times.write(OTHER, [row(4)], note(0))
    for limit in (1, 2, 50):
        found, last, more = list[TimeRow](), None, True
        while more:
            answer = times.read(SESSION, 0, FIRST, last, limit)
            found, more = [*found, *answer.rows], answer.more
            last = answer.rows[-1] if answer.rows else None
        assert found == narrow
    assert times.read(SESSION, 0, -1, None, 50).rows == narrow[1:]
    assert times.read(SESSION, 0, 0, None, 50).rows == narrow[2:]
    assert times.read(SESSION, 0, LAST, None, 1).rows == narrow[4:]
    assert times.read(SESSION, 1, -SECOND, None, 50).rows == [wide]
    assert not times.read(SESSION, 2, FIRST, None, 50).rows


def test_a_row_of_fewer_events_is_another_row(times: TimeIndex) -> None:
    """One that was written after some of its events were pruned does not overwrite what it does not have."""
    longer, shorter = row(3, 5), TimeRow(row(3, 5).hits[1:])
    times.write(SESSION, [longer], note(0))
    times.write(SESSION, [shorter], note(0))
    assert times.read(SESSION, 0, 0, None, 9).rows == [shorter, longer]
    assert times.read(SESSION, 0, 0, shorter, 9).rows == [longer], "nor does whoever reads on miss it"


def test_rows_that_are_forgotten_are_gone_and_no_others(times: TimeIndex) -> None:
    rows = [row(n, position=n) for n in range(1, 31)]
    times.write(SESSION, rows, note(0))
    times.write(OTHER, rows, note(0))
    for _ in range(2):
        times.forget(SESSION, rows[:27])
    times.forget(SESSION, [])
    assert times.read(SESSION, 0, 0, None, 50).rows == rows[27:]
    assert times.read(OTHER, 0, 0, None, 50).rows == rows
    assert times.note(SESSION) == note(0)
