"""Connections and subscriptions, in memory and where they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.live.adapters.dynamodb.connections import DynamoConnections
from millrace.live.adapters.dynamodb.open_sockets import DynamoOpenSockets
from millrace.live.adapters.dynamodb.places import LIFE_SECONDS, DynamoPlaces
from millrace.live.adapters.dynamodb.subscriptions import DynamoSubscriptions
from millrace.live.adapters.memory import MemoryConnections, MemoryPlaces, MemorySubscriptions
from millrace.live.adapters.memory_sockets import MemoryOpenSockets
from millrace.live.domain.line import TURN_MS
from millrace.live.domain.shards import Shard, key_of
from millrace.live.ports import (
    Connection,
    Connections,
    Cycle,
    Handover,
    OpenSockets,
    Places,
    Subscription,
    Subscriptions,
    TakenSnapshot,
)
from tests.support.aws_tables import client_for, client_of, create_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LEDGER = Ledger.of("sync", "default", "demo")
NOW = 1_800_000_000_000
MANY = 20
"""Messages in place of those that a connection may have, in a second or in flight."""


@dataclass(frozen=True)
class Stores:
    connections: Connections
    subscriptions: Subscriptions
    places: Places
    sockets: OpenSockets


@pytest.fixture(params=["memory", "moto", "embedded", "lean"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "memory":
        connections, subscriptions = MemoryConnections(), MemorySubscriptions()
        places = MemoryPlaces(connections, subscriptions)
        yield Stores(connections, subscriptions, places, MemoryOpenSockets(places))
    elif request.param == "moto":
        with mock_aws():
            yield on_dynamodb(client_for(None))
    else:
        yield on_dynamodb(client_of(request))


def on_dynamodb(client: DynamoDBClient) -> Stores:
    tables = create_tables(client)
    return Stores(
        DynamoConnections(tables.client, tables.connections),
        DynamoSubscriptions(tables.client, tables.connections, in_turn, lambda: NOW),
        DynamoPlaces(tables.client, tables.connections, lambda: NOW),
        DynamoOpenSockets(tables.client, tables.connections, lambda: NOW),
    )


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for adapter in ("memory", "dynamodb.connections"):
        for limit in ("MAX_MESSAGES_PER_SECOND", "MAX_IN_FLIGHT"):
            monkeypatch.setattr(f"millrace.live.adapters.{adapter}.{limit}", MANY)


def subscription(connection: str = "c1", id_: str = "sync", **changes: object) -> Subscription:
    base = Subscription(connection, id_, LEDGER.name, ("a",), "snake", "demo", NOW + 1000, 0)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_s12_messages_of_a_connection_are_numbered_as_they_come_and_done_one_after_the_other(stores: Stores) -> None:
    connections = stores.connections
    connections.open("c1", NOW)
    first, second, third = (connections.line_up("c1", "submit_events", NOW + n) for n in range(3))
    assert [turn.number for turn in (first, second, third)] == [1, 2, 3]
    assert [turn.ahead for turn in (first, second, third)] == [0, 1, 2]
    assert first.connection == Connection("c1")
    connections.end_turn(first, Connection("c1", missteps=1), NOW + 60)
    second, third = connections.look("c1", second), connections.look("c1", third)
    assert (second.ahead, third.ahead, second.moved_ms) == (0, 1, NOW + 60)
    assert second.connection == Connection("c1", missteps=1)


def test_s12_a_turn_that_has_ended_is_not_ended_again(stores: Stores) -> None:
    connections = stores.connections
    connections.open("c1", NOW)
    first, second = (connections.line_up("c1", "submit_events", NOW) for _ in range(2))
    connections.end_turn(first, Connection("c1", missteps=1), NOW)
    connections.end_turn(second, Connection("c1", missteps=2), NOW)
    connections.end_turn(first, Connection("c1", missteps=1), NOW)
    third = connections.line_up("c1", "heartbeat", NOW)
    assert (third.ahead, third.connection) == (0, Connection("c1", missteps=2))


@pytest.mark.usefixtures("few")
def test_s12_so_many_submits_are_in_flight_and_one_that_is_done_makes_room(stores: Stores) -> None:
    connections = stores.connections
    connections.open("c1", NOW)
    waiting = [connections.line_up("c1", "submit_events", NOW + 100 * n) for n in range(MANY)]
    now = NOW + 100 * MANY
    assert connections.line_up("c1", "submit_events", now).refused == "in_flight"
    other = connections.line_up("c1", "heartbeat", now)
    assert (other.refused, other.number) == ("", MANY + 1), "a refused message gets no number"
    connections.end_turn(waiting[0], Connection("c1"), now)
    assert connections.line_up("c1", "submit_events", now).number == MANY + 2
    assert connections.line_up("c1", "submit_events", now).refused == "in_flight"


def test_a_sync_is_refused_while_another_is_in_the_line(stores: Stores) -> None:
    connections = stores.connections
    connections.open("c1", NOW)
    first = connections.line_up("c1", "sync", NOW)
    assert connections.line_up("c1", "sync", NOW + 1).refused == "sync"
    behind = connections.line_up("c1", "heartbeat", NOW + 2)
    assert (behind.ahead, behind.slow) == (1, first.number)
    connections.end_turn(first, Connection("c1"), NOW + 3)
    assert connections.line_up("c1", "sync", NOW + 4).number == 3


@pytest.mark.parametrize("kind", ["sync", "submit_events", "heartbeat"])
def test_s12_whoever_comes_when_nobody_can_be_working_on_the_line_is_told_that_it_is_stuck(
    stores: Stores, kind: str
) -> None:
    """Else a sync whose function died would have every later one refused, as if it were still running."""
    connections = stores.connections
    connections.open("c1", NOW)
    done = connections.line_up("c1", "heartbeat", NOW)
    connections.end_turn(done, Connection("c1"), NOW)
    later = NOW + 10 * TURN_MS
    died = connections.line_up("c1", kind, later)
    assert died.number == 2, "a line whose messages are all done is not dead, however old"
    assert connections.line_up("c1", "heartbeat", later + 1).number == 3, "nor is one that may be alive"
    assert connections.line_up("c1", kind, later + 1 + TURN_MS).refused == "stuck"
    assert connections.line_up("c1", "heartbeat", later + 1 + TURN_MS).refused == "stuck"


def test_what_a_message_changed_is_there_for_the_next(stores: Stores) -> None:
    identity = Identity("me", "t", frozenset({"p", "q"}), ("a*", "b"), frozenset({"producer"}), "team", NOW)
    stores.connections.open("c1", NOW)
    changed = Connection("c1", "camel", identity, "p", NOW + 5, Cycle(("a", "b"), 7, 99))
    turn = stores.connections.line_up("c1", "x", NOW)
    for connection in (changed, replace(changed, cycle=Cycle(None, 1, 2)), replace(changed, cycle=None)):
        stores.connections.end_turn(turn, connection, NOW)
        turn = stores.connections.line_up("c1", "x", NOW)
        assert turn.connection == connection


@pytest.mark.usefixtures("few")
def test_a_connection_has_so_many_messages_a_second(stores: Stores) -> None:
    connections = stores.connections
    connections.open("c1", NOW)
    for second in (NOW, NOW + 1000, NOW + 5000):
        for _ in range(MANY):
            turn = connections.line_up("c1", "heartbeat", second)
            assert turn.connection is not None
            connections.end_turn(turn, turn.connection, second)
        assert connections.line_up("c1", "heartbeat", second + 999).refused == "rate"


def test_counters_of_past_seconds_do_not_pile_up(stores: Stores) -> None:
    connections = stores.connections
    connections.open("c1", NOW)
    for number in range(20):
        turn = connections.line_up("c1", "heartbeat", NOW + 1000 * number)
        assert len(turn.seconds) <= 2
        assert turn.connection
        connections.end_turn(turn, turn.connection, NOW + 1000 * number + 500)


def test_a_stranger_is_one_that_has_not_said_who_it_is(stores: Stores) -> None:
    connections = stores.connections
    assert connections.is_stranger("c1", NOW), "not known at all"
    connections.open("c1", NOW)
    assert connections.is_stranger("c1", NOW)
    turn = connections.line_up("c1", "heartbeat", NOW)
    with pytest.raises(Unavailable):
        connections.is_stranger("c1", NOW + 50)
    assert connections.is_stranger("c1", NOW + TURN_MS), "whoever handled it has died"
    connections.end_turn(turn, Connection("c1", missteps=1), NOW)
    assert connections.is_stranger("c1", NOW + 50)
    turn = connections.line_up("c1", "connect", NOW + 60)
    known = Connection("c1", identity=Identity("me", "t", frozenset(), (), frozenset(), "t"))
    connections.end_turn(turn, known, NOW + 65)
    assert not connections.is_stranger("c1", NOW + 70)


def test_a_removed_connection_is_gone_and_stays_gone(stores: Stores) -> None:
    connections = stores.connections
    connections.open("c1", NOW)
    turn = connections.line_up("c1", "x", NOW)
    for _ in range(2):
        connections.remove("c1")
    assert connections.look("c1", turn).refused == "gone"
    connections.end_turn(turn, Connection("c1"), NOW)
    assert connections.line_up("c1", "x", NOW).refused == "gone"
    assert connections.line_up("never", "x", NOW).refused == "gone"


def test_a_connection_that_an_earlier_release_opened_is_understood() -> None:
    with mock_aws():
        stores = on_dynamodb(client_for(None))
        connections = stores.connections
        assert isinstance(connections, DynamoConnections)
        stored = '{"id": "c1", "dialect": "", "identity": null, "project": "", "expires_ms": 0, "cycle": null}'
        row: Any = {"p": {"S": "c#c1"}, "s": {"S": "connection"}, "c": {"S": stored}, "busy": {"S": "sync"}}
        row |= {name: {"N": value} for name, value in (("w", str(NOW // 1000)), ("n", "200"), ("until", "0"))}
        connections.client.put_item(TableName=connections.table, Item=row)
        turn = connections.line_up("c1", "submit_events", NOW)
        assert (turn.number, turn.ahead, turn.connection) == (1, 0, Connection("c1"))


def test_subscriptions_are_found_by_partition_or_for_the_whole_ledger_each_once(stores: Stores) -> None:
    both = subscription("c1", partitions=("a", "b"))
    one = subscription("c2", partitions=("b",))
    whole = subscription("c3", partitions=None)
    other = subscription("c4", ledger="sync#default#other", partitions=None)
    for each in (both, one, whole, other):
        stores.subscriptions.add(each)
    assert _found(stores, "a") == [both, whole]
    assert _found(stores, "b") == [both, one, whole]
    assert _found(stores, "a", "b") == [both, one, whole]
    assert _found(stores, "z") == [whole]


def _found(stores: Stores, *partitions: str) -> list[Subscription]:
    return sorted(stores.subscriptions.find(LEDGER, partitions), key=lambda each: each.connection)


def test_a_new_subscription_takes_the_place_of_the_earlier_one_of_its_id(stores: Stores) -> None:
    stores.subscriptions.add(subscription(partitions=("a", "b")))
    changed = subscription(partitions=("b", "c"), after=9)
    stores.subscriptions.add(changed)
    assert _found(stores, "a") == []
    assert _found(stores, "b", "c") == [changed]


def test_all_subscriptions_of_a_connection_or_just_one_can_be_removed(stores: Stores) -> None:
    for id_ in ("s1", "s11", "s2"):
        stores.subscriptions.add(subscription(id_=id_, partitions=tuple(f"p{n}" for n in range(30))))
    stores.subscriptions.remove("c1", "s1")
    assert sorted(each.id for each in stores.subscriptions.find(LEDGER, ["p3"])) == ["s11", "s2"]
    for _ in range(2):
        stores.subscriptions.remove("c1")
    assert list(stores.subscriptions.find(LEDGER, ["p3"])) == []


def test_a_snapshot_goes_live_only_after_what_it_was_told_to_send(stores: Stores) -> None:
    sending = subscription(partitions=None, sender_until_ms=NOW + 9)
    stores.subscriptions.add(sending)
    assert _found(stores) == [sending]
    assert stores.subscriptions.note_missed(sending, 12) is None
    assert stores.subscriptions.note_missed(sending, 11) is None
    assert stores.subscriptions.go_live(sending, 10) == 12
    assert not _found(stores)[0].live
    assert stores.subscriptions.go_live(sending, 12) is None
    live = replace(sending, sender_until_ms=0, after=12)
    assert _found(stores) == [live]
    assert stores.subscriptions.note_missed(sending, 13) == live


def test_a_note_to_a_subscription_that_is_gone_brings_nothing_back(stores: Stores) -> None:
    sending = subscription(partitions=None, sender_until_ms=NOW + 9)
    assert stores.subscriptions.note_missed(sending, 12) is None
    assert _found(stores) == []


def test_a_place_is_taken_once_and_given_back_with_its_connection_or_subscription(stores: Stores) -> None:
    for name in ("c1", "c2", "c3"):
        stores.connections.open(name, NOW)
    assert [stores.places.of_connection("default", name) for name in ("c1", "c2", "c2")] == [1, 2, 2]
    assert stores.places.of_connection("other", "c3") == 1, "of another tenant"
    stores.places.leave("default", "c2")
    assert stores.places.of_connection("default", "c1") == 1
    assert stores.places.of_connection("default", "c2") == 2

    for connection, id_ in (("c1", "s1"), ("c1", "s2"), ("c2", "s1")):
        stores.subscriptions.add(subscription(connection, id_, partitions=None))
    stores.subscriptions.add(subscription("c1", "sync"))
    assert stores.places.of_subscription("default", "c1", "s1") == 1
    assert stores.places.of_subscription("default", "c1", "s2") == 2
    assert stores.places.of_subscription("default", "c2", "s1") == 3
    stores.subscriptions.remove("c1", "s1")
    assert stores.places.of_subscription("default", "c2", "s1") == 2
    stores.subscriptions.remove("c1")
    stores.connections.remove("c1")
    assert stores.places.of_subscription("default", "c2", "s1") == 1
    assert stores.places.of_connection("default", "c2") == 1
    stores.connections.remove("c1")


def test_a_tenants_connections_are_listed_in_order_with_what_they_subscribed_to(stores: Stores) -> None:
    bearer = Identity("C1", "default", frozenset({"demo"}), ("*",), frozenset({"consumer"}), "default")
    for name in ("c3", "c1", "c2", "stranger"):
        stores.connections.open(name, NOW)
    for name in ("c1", "c2", "c3"):
        turn = stores.connections.line_up(name, "connect", NOW)
        stores.connections.end_turn(turn, Connection(name, "snake", bearer, "demo"), NOW)
        stores.places.of_connection("default", name)
    stores.places.of_connection("other", "stranger")
    stores.subscriptions.add(subscription("c1", "sync", partitions=("a", "b#c")))
    stores.subscriptions.add(subscription("c1", "s1", partitions=None))
    sockets = stores.sockets
    assert list(sockets.page("default", "", 2)) == ["c1", "c2"]
    assert list(sockets.page("default", "c2", 2)) == ["c3"]
    assert list(sockets.page("nobody", "", 2)) == []
    found = sockets.look("c1")
    assert found is not None
    assert (found.connection.project, list(found.subscriptions)) == (
        "demo",
        [("s1", LEDGER.name), ("sync", LEDGER.name)],
    )
    assert sockets.look("stranger") is None
    stores.connections.remove("c1")
    assert list(sockets.page("default", "", 10)) == ["c2", "c3"]
    assert sockets.look("c1") is None


def test_a_place_that_nobody_gave_back_ends_with_the_life_of_a_connection() -> None:
    """DynamoDB may take its time with what has expired."""
    with mock_aws():
        tables = create_tables(client_for(None))
        now = [NOW]
        connections = DynamoConnections(tables.client, tables.connections)
        places = DynamoPlaces(tables.client, tables.connections, lambda: now[0])
        for name in ("c1", "c2"):
            connections.open(name, NOW)
        assert places.of_connection("default", "c1") == 1
        now[0] += (LIFE_SECONDS + 1) * 1000
        assert places.of_connection("default", "c2") == 1
        assert places.of_connection("default", "gone") == 0, "a connection that is closed takes none"


def test_t7_the_rest_of_a_snapshot_is_handed_over_and_taken_by_one(stores: Stores) -> None:
    subscriptions = stores.subscriptions
    sending = subscription(id_="s1", partitions=None, sender_until_ms=NOW + 5)
    subscriptions.add(sending)
    assert subscriptions.hand_over(sending, 0, NOW + 60)
    assert subscriptions.hand_over(sending, 0, NOW + 60), "again is fine"
    assert not subscriptions.hand_over(sending, 2, NOW + 60), "it is at another step"
    (found,) = subscriptions.find(LEDGER, ())
    assert found == replace(sending, sender_until_ms=NOW + 60)
    handover = Handover("c1", "s1", LEDGER.name, 3, 9, 1)
    mine = replace(sending, sender_until_ms=NOW + 70)
    assert subscriptions.take_over(handover, NOW + 70, "a") == TakenSnapshot(mine, 2, mine=True)
    assert subscriptions.take_over(handover, NOW + 80, "a") == TakenSnapshot(mine, 2, mine=True), "again is fine"
    assert subscriptions.take_over(handover, NOW + 80, "b") == TakenSnapshot(mine, 2, mine=False)
    assert not subscriptions.hand_over(sending, 0, NOW + 90), "who handed over has nothing to hand over"
    assert subscriptions.hand_over(mine, 2, NOW + 90)
    late = subscriptions.take_over(handover, NOW + 99, "b")
    assert late is not None
    assert (late.step, late.mine) == (3, False)


def test_t7_a_note_is_kept_over_a_handover(stores: Stores) -> None:
    subscriptions = stores.subscriptions
    sending = subscription(id_="s1", partitions=None, sender_until_ms=NOW + 5)
    subscriptions.add(sending)
    assert subscriptions.note_missed(sending, 12) is None
    assert subscriptions.hand_over(sending, 0, NOW + 60)
    subscriptions.take_over(Handover("c1", "s1", LEDGER.name, 3, 9, 1), NOW + 70, "a")
    assert subscriptions.go_live(sending, 10) == 12
    assert subscriptions.go_live(sending, 12) is None
    (live,) = subscriptions.find(LEDGER, ())
    assert (live.live, live.after) == (True, 12)


def test_t7_nobody_hands_over_or_takes_what_is_gone(stores: Stores) -> None:
    sending = subscription(id_="s1", partitions=None, sender_until_ms=NOW + 5)
    assert not stores.subscriptions.hand_over(sending, 0, NOW + 60)
    assert stores.subscriptions.take_over(Handover("c1", "s1", LEDGER.name, 3, 9, 1), NOW + 70, "a") is None
    assert stores.subscriptions.find(LEDGER, ()) == []


@pytest.mark.parametrize("count", [2, 8, 64])
def test_every_subscription_is_found_in_one_shard_and_a_connection_has_only_one(stores: Stores, count: int) -> None:
    for number in range(24):
        stores.subscriptions.add(subscription(f"c{number}", "sync", partitions=("a",)))
        stores.subscriptions.add(subscription(f"c{number}", "s1", partitions=None))
    shards = [stores.subscriptions.find(LEDGER, ["a"], Shard(number, count)) for number in range(count)]
    found = [(each.connection, each.id) for shard in shards for each in shard]
    assert sorted(found) == sorted((f"c{n}", id_) for n in range(24) for id_ in ("sync", "s1"))
    assert sum(len({each.connection for each in shard}) for shard in shards) == 24


@pytest.mark.parametrize("partitions", [("a",), None])
def test_of_very_many_subscriptions_only_the_first_need_be_found(
    stores: Stores, partitions: tuple[str, ...] | None
) -> None:
    everyone = [subscription(f"c{number}", partitions=partitions) for number in range(12)]
    for one in everyone:
        stores.subscriptions.add(one)
    assert len(stores.subscriptions.find(LEDGER, ["a"], most=12)) == 12, "all, if they are no more than that"
    some = stores.subscriptions.find(LEDGER, ["a"], most=5)
    assert len(some) > 5
    first = sorted(everyone, key=lambda one: key_of(one.connection, one.id))[:6]
    assert {one.connection for one in first} <= {one.connection for one in some}


def _as_it_was_written_before(stores: Stores, old: Subscription) -> None:
    """Without a slot, neither in its rows nor in the row that lists them."""
    subscriptions = stores.subscriptions
    assert isinstance(subscriptions, DynamoSubscriptions)
    client, table = subscriptions.client, subscriptions.table
    subscriptions.add(old)
    for row in client.scan(TableName=table)["Items"]:
        if row["s"]["S"].endswith(f"#{old.connection}#{old.id}"):
            client.delete_item(TableName=table, Key={"p": row["p"], "s": row["s"]})
            client.put_item(TableName=table, Item={**row, "s": {"S": f"{old.connection}#{old.id}"}})
        elif row["s"]["S"] == f"sub#{old.id}":
            client.put_item(TableName=table, Item={name: value for name, value in row.items() if name != "r"})


@pytest.mark.parametrize("connection", ["L0SM9cOFvHcCJQ=", "00aBcOFvHcCJQ=", "8000x", "zz="])
def test_a_subscription_from_before_there_were_shards_is_found_in_one_of_them_and_removed(connection: str) -> None:
    with mock_aws():
        stores = on_dynamodb(client_for(None))
        old = subscription(connection, partitions=("a", "b"))
        _as_it_was_written_before(stores, old)
        for count in (1, 2, 16):
            shards = [stores.subscriptions.find(LEDGER, ["a"], Shard(number, count)) for number in range(count)]
            assert [each for shard in shards for each in shard] == [old]
        changed = replace(old, partitions=("b", "c"))
        stores.subscriptions.add(changed)
        assert _found(stores, "a", "b", "c") == [changed], "a new one takes its place"
        _as_it_was_written_before(stores, old)
        stores.subscriptions.remove(connection)
        assert _found(stores, "a", "b", "c") == []


def test_a_snapshot_that_began_before_there_were_shards_goes_live_without_a_seam() -> None:
    with mock_aws():
        stores = on_dynamodb(client_for(None))
        subscriptions = stores.subscriptions
        sending = subscription("L0SM=", "s1", partitions=None, sender_until_ms=NOW + 9)
        _as_it_was_written_before(stores, sending)
        assert subscriptions.note_missed(sending, 12) is None
        assert subscriptions.hand_over(sending, 0, NOW + 60)
        taken = subscriptions.take_over(Handover("L0SM=", "s1", LEDGER.name, 3, 9, 1), NOW + 70, "a")
        assert taken is not None
        assert taken.mine
        assert subscriptions.go_live(sending, 10) == 12
        assert subscriptions.go_live(sending, 12) is None
        assert _found(stores) == [replace(sending, sender_until_ms=0, after=12)]
