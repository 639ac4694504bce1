"""Connections and subscriptions, in memory and where they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from moto import mock_aws

from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.live.adapters.dynamodb.connections import DynamoConnections
from millrace.live.adapters.dynamodb.subscriptions import DynamoSubscriptions
from millrace.live.adapters.memory import MemoryConnections, MemorySubscriptions
from millrace.live.domain.messages import MAX_MESSAGES_PER_SECOND
from millrace.live.ports import Connection, Connections, Cycle, Subscription, Subscriptions
from tests.support.aws_tables import client_for, create_tables

LEDGER = Ledger.of("sync", "default", "demo")
NOW = 1_800_000_000_000


@dataclass(frozen=True)
class Stores:
    connections: Connections
    subscriptions: Subscriptions


@pytest.fixture(params=["memory", "moto", "embedded"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "memory":
        yield Stores(MemoryConnections(), MemorySubscriptions())
    elif request.param == "moto":
        with mock_aws():
            yield on_dynamodb(None)
    else:
        yield on_dynamodb(request.getfixturevalue("endpoint"))


def on_dynamodb(endpoint: str | None) -> Stores:
    tables = create_tables(client_for(endpoint))
    return Stores(
        DynamoConnections(tables.client, tables.connections),
        DynamoSubscriptions(tables.client, tables.connections, in_turn, lambda: NOW),
    )


def subscription(connection: str = "c1", id_: str = "sync", **changes: object) -> Subscription:
    base = Subscription(connection, id_, LEDGER.name, ("a",), "snake", "demo", NOW + 1000, 0)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_one_message_of_a_connection_is_handled_at_a_time(stores: Stores) -> None:
    stores.connections.open("c1", NOW)
    first = stores.connections.take_turn("c1", "sync", NOW, NOW + 100)
    assert first.connection == Connection("c1")
    assert stores.connections.take_turn("c1", "heartbeat", NOW + 50, NOW + 150).refused == "sync"
    stores.connections.end_turn(first.connection)
    assert stores.connections.take_turn("c1", "heartbeat", NOW + 60, NOW + 160).connection is not None


def test_a_turn_whose_process_died_ends_by_itself(stores: Stores) -> None:
    stores.connections.open("c1", NOW)
    stores.connections.take_turn("c1", "sync", NOW, NOW + 100)
    assert stores.connections.take_turn("c1", "sync", NOW + 101, NOW + 200).connection is not None


def test_what_a_message_changed_is_there_for_the_next(stores: Stores) -> None:
    identity = Identity("me", "t", frozenset({"p", "q"}), ("a*", "b"), frozenset({"producer"}), "team", NOW)
    stores.connections.open("c1", NOW)
    changed = Connection("c1", "camel", identity, "p", NOW + 5, Cycle(("a", "b"), 7, 99))
    for connection in (changed, replace(changed, cycle=Cycle(None, 1, 2)), replace(changed, cycle=None)):
        stores.connections.end_turn(connection)
        assert stores.connections.take_turn("c1", "x", NOW, NOW + 1).connection == connection


def test_a_connection_has_so_many_messages_a_second(stores: Stores) -> None:
    stores.connections.open("c1", NOW)
    for _ in range(MAX_MESSAGES_PER_SECOND):
        turn = stores.connections.take_turn("c1", "heartbeat", NOW, NOW)
        assert turn.connection is not None
        stores.connections.end_turn(turn.connection)
    assert stores.connections.take_turn("c1", "heartbeat", NOW, NOW).refused == "rate"
    assert stores.connections.take_turn("c1", "heartbeat", NOW + 1000, NOW + 1000).connection is not None


def test_a_stranger_is_one_that_has_not_said_who_it_is(stores: Stores) -> None:
    connections = stores.connections
    assert connections.is_stranger("c1", NOW), "not known at all"
    connections.open("c1", NOW)
    assert connections.is_stranger("c1", NOW)
    turn = connections.take_turn("c1", "heartbeat", NOW, NOW + 100)
    assert turn.connection
    with pytest.raises(Unavailable):
        connections.is_stranger("c1", NOW + 50)
    connections.end_turn(replace(turn.connection, missteps=1))
    assert connections.is_stranger("c1", NOW + 50)
    turn = connections.take_turn("c1", "connect", NOW + 60, NOW + 160)
    assert turn.connection
    connections.end_turn(replace(turn.connection, identity=Identity("me", "t", frozenset(), (), frozenset(), "t")))
    assert not connections.is_stranger("c1", NOW + 70)


def test_a_removed_connection_is_gone_and_stays_gone(stores: Stores) -> None:
    stores.connections.open("c1", NOW)
    for _ in range(2):
        stores.connections.remove("c1")
    stores.connections.end_turn(Connection("c1"))
    assert stores.connections.take_turn("c1", "x", NOW, NOW).refused == "gone"
    assert stores.connections.take_turn("never", "x", NOW, NOW).refused == "gone"


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
