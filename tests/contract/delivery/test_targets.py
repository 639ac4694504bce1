"""Targets, positions, agenda and sealed secrets, in memory and where they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from moto import mock_aws

from millrace.delivery.adapters.dynamodb.agenda import DynamoAgenda
from millrace.delivery.adapters.dynamodb.directory import DynamoDirectory, DynamoTargetStates
from millrace.delivery.adapters.dynamodb.drains import DynamoDrains, DynamoLine
from millrace.delivery.adapters.dynamodb.positions import DynamoPositions
from millrace.delivery.adapters.dynamodb.runs import Runs
from millrace.delivery.adapters.memory.drains import MemoryDrains, MemoryLine
from millrace.delivery.adapters.memory.targets import MemoryAgenda, MemoryDirectory, MemoryPositions, MemorySecrets
from millrace.delivery.adapters.target_secrets import SealedSecrets
from millrace.delivery.domain.circuit import Circuit
from millrace.delivery.domain.drains import EXPECTED_MS, DrainLease, WaitingTarget
from millrace.delivery.domain.hub_targets import HubTarget, SecretsLost, check_target
from millrace.delivery.domain.targets import Blocked, TargetState
from millrace.delivery.ports.deliveries import TargetStates
from millrace.delivery.ports.drains import Drains, Expected, LeaseTaken, Line, Paces
from millrace.delivery.ports.targets import Agenda, Directory, Kept, Position, Positions, Secrets
from millrace.delivery.receivers.registry import RECEIVERS
from millrace.ledger.adapters.keyring import StagedKeys
from millrace.ledger.adapters.memory import MemoryState, in_turn
from tests.support.aws_tables import client_for, client_of, make_table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class Stores:
    directory: Directory
    states: TargetStates
    positions: Positions
    agenda: Agenda
    drains: Drains
    line: Line
    paces: Paces


@pytest.fixture(params=["memory", "moto", "embedded", "lean"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "memory":
        directory = MemoryDirectory()
        yield Stores(
            directory,
            directory.states,
            MemoryPositions(),
            MemoryAgenda(),
            MemoryDrains(),
            MemoryLine(),
            directory.states,
        )
    elif request.param == "moto":
        with mock_aws():
            yield on_dynamodb(client_for(None))
    else:
        yield on_dynamodb(client_of(request))


def on_dynamodb(client: DynamoDBClient) -> Stores:
    runs = Runs(client, make_table(client, "Delivery"), in_turn)
    directory = DynamoDirectory(client, runs.table)
    return Stores(
        directory,
        DynamoTargetStates(directory),
        DynamoPositions(runs, MemoryState()),
        DynamoAgenda(runs),
        DynamoDrains(client, runs.table),
        DynamoLine(client, runs.table),
        DynamoTargetStates(directory),
    )


def target(id_: str, tenant: str = "acme", **more: object) -> HubTarget:
    body = {"type": "stub", "sources": [{"contract": "sync", "scope": "demo*"}], **more}
    return replace(check_target(tenant, id_, body, None, 5, kinds=RECEIVERS, loopback=False), sealed=b"sealed")


def test_a_target_is_kept_as_it_was_put_with_how_it_fares(stores: Stores) -> None:
    """Also under a name that nothing new may have, and that was put before that rule was there."""
    made = replace(target("a", families=["order."], start="now", paused=True), id="a#b")
    assert stores.directory.get("acme", "a#b") is None
    assert stores.directory.put(made, None)
    assert stores.directory.get("acme", "a#b") == Kept(made, TargetState())
    stores.states.fare(made.key, Circuit(3, 99), "answered 500")
    stores.states.pause(made.key, "gone")
    stores.states.block(made.key, Blocked.NETWORK_UNAVAILABLE, "no connection", 7)
    state = TargetState(Circuit(3, 99), "gone", "network_unavailable", "no connection", 7)
    assert stores.directory.get("acme", "a#b") == Kept(made, state)
    assert stores.states.get(made.key) == state
    stores.states.fare(made.key, Circuit(), "")
    stores.states.pause(made.key, "")
    assert stores.states.get(made.key) == TargetState()


def test_a_tenants_targets_are_its_own(stores: Stores) -> None:
    for one in (target("b"), target("a"), target("a", "other"), target("c", "ac")):
        stores.directory.put(one, None)
    assert [kept.target.id for kept in stores.directory.of("acme")] == ["a", "b"]
    assert list(stores.directory.of("nobody")) == []
    assert sorted(stores.directory.tenants()) == ["ac", "acme", "other"]


def test_a_target_changes_only_from_what_was_seen(stores: Stores) -> None:
    made = target("a")
    newer = replace(made, revision=2, paused=True)
    assert stores.directory.put(made, None)
    assert not stores.directory.put(newer, None)
    assert stores.directory.put(newer, made)
    assert not stores.directory.put(replace(newer, paused=False), made)
    assert stores.directory.get("acme", "a") == Kept(newer, TargetState())


def test_a_removed_target_is_gone_with_how_it_fared(stores: Stores) -> None:
    made = target("a")
    stores.directory.put(made, None)
    stores.states.pause(made.key, "gone")
    assert stores.directory.remove("acme", "a")
    assert not stores.directory.remove("acme", "a")
    assert not stores.directory.remove("acme", "nobody")
    assert list(stores.directory.former("acme")) == ["a"]
    assert stores.directory.put(made, None)
    assert stores.directory.get("acme", "a") == Kept(made, TargetState())


def test_a_position_is_put_and_never_moved_back(stores: Stores) -> None:
    one = target("a").target()
    stores.positions.begin_at(one, "sync#acme#new", 0)
    for at in (5, 3, 9):
        stores.positions.begin_at(one, "sync#acme#demo", at)
    stores.positions.begin_at(one, "delivery#acme#team", 1)
    assert stores.positions.of(one, ["sync#acme#demo", "sync#acme#none"]) == {"sync#acme#demo": Position(9)}
    assert list(stores.positions.all(one, "delivery#")) == [("delivery#acme#team", Position(1))]
    assert len(list(stores.positions.all(one))) == 2
    assert list(stores.positions.all(target("b").target())) == []
    assert stores.positions.lowest_open(one, "sync#acme#demo") is None


def test_a_noted_visit_is_due_at_once(stores: Stores) -> None:
    one, other = target("a").target(), target("b").target()
    assert not stores.agenda.due(one, 10**12, 1)
    stores.agenda.note(one, ["sync#acme#demo"])
    stores.agenda.note(one, ["sync#acme#demo", "sync#acme#other"])
    assert stores.agenda.due(one, 0, 1)
    assert not stores.agenda.due(other, 10**12, 1)


@pytest.fixture(params=["memory", "sealed"])
def secrets(request: pytest.FixtureRequest) -> Secrets:
    return MemorySecrets() if request.param == "memory" else SealedSecrets(staged("first"))


def staged(*stages: str) -> StagedKeys:
    return StagedKeys(
        lambda stage: dict(zip(("AWSCURRENT", "AWSPREVIOUS"), stages, strict=False)).get(stage), lambda: 0
    )


def test_a_secret_opens_for_its_target_only(secrets: Secrets) -> None:
    sealed = secrets.seal("acme#a", "whsec_secret")
    assert secrets.open("acme#a", sealed) == "whsec_secret"
    with pytest.raises(SecretsLost):
        secrets.open("acme#b", sealed)


def test_what_is_sealed_shows_nothing_and_outlives_one_rotation() -> None:
    sealed = SealedSecrets(staged("first")).seal("acme#a", "whsec_secret")
    assert b"whsec" not in sealed
    assert SealedSecrets(staged("second", "first")).open("acme#a", sealed) == "whsec_secret"
    with pytest.raises(SecretsLost):
        SealedSecrets(staged("third", "second")).open("acme#a", sealed)


def test_one_drain_of_a_target_lives_at_a_time(stores: Stores) -> None:
    """D6"""
    first, second = DrainLease("acme", "a", "h1", 100, 200, slow=True), DrainLease("acme", "a", "h2", 150, 250)
    assert stores.drains.take(first, 100) == LeaseTaken(True)
    assert stores.drains.take(second, 199) == LeaseTaken(False, first)
    assert stores.drains.take(replace(second, target_id="b"), 150) == LeaseTaken(True), "another target is free"
    assert stores.drains.take(replace(second, tenant="other"), 150) == LeaseTaken(True)
    longer = replace(first, until_ms=300)
    assert stores.drains.renew(longer)
    assert not stores.drains.renew(replace(second, until_ms=400))
    assert stores.drains.take(second, 299) == LeaseTaken(False, longer)
    assert [drain.target_id for drain in stores.drains.of("acme")] == ["a", "b"]
    assert stores.drains.of("acme")[0] == longer
    assert stores.drains.of("ac") == []


def test_a_lease_that_ended_is_taken_and_its_holder_has_no_say_any_more(stores: Stores) -> None:
    first, second = DrainLease("acme", "a", "h1", 100, 200), DrainLease("acme", "a", "h2", 200, 300)
    stores.drains.take(first, 100)
    assert stores.drains.ask(first)
    assert stores.drains.take(second, 200) == LeaseTaken(True, first), "and it says whose it was"
    assert not stores.drains.renew(replace(first, until_ms=900))
    assert not stores.drains.ask(first)
    assert not stores.drains.end(first)
    assert stores.drains.of("acme") == [second]
    assert stores.drains.end(second) is False, "what was asked of a dead one was asked of nobody"
    assert stores.drains.of("acme") == []
    assert not stores.drains.renew(second)


def test_who_ends_hears_that_somebody_asked_for_more(stores: Stores) -> None:
    drain = DrainLease("acme", "a", "h1", 100, 200)
    stores.drains.take(drain, 100)
    assert stores.drains.ask(drain)
    assert stores.drains.renew(replace(drain, until_ms=300))
    assert stores.drains.end(drain) is True
    assert not stores.drains.ask(drain)
    assert stores.drains.take(drain, 150) == LeaseTaken(True)
    assert stores.drains.end(drain) is False


def test_a_wake_up_is_announced_once_until_somebody_takes_the_lease_or_it_may_be_lost(stores: Stores) -> None:
    """D6"""
    drains, now = stores.drains, 1_000_000
    assert drains.expect("acme", "a", now) == Expected(mine=True)
    assert drains.expect("acme", "a", now + EXPECTED_MS - 1) == Expected(mine=False)
    assert drains.expect("acme", "b", now) == Expected(mine=True), "another target has its own"
    assert drains.expect("acme", "a", now + EXPECTED_MS) == Expected(mine=True)
    assert drains.of("acme") == [], "nobody drains"
    drain = DrainLease("acme", "a", "h1", now, now + 9_000)
    assert drains.take(drain, now) == LeaseTaken(True), "nobody died"
    assert drains.expect("acme", "a", now + 1) == Expected(mine=False, drain=drain)
    assert drains.end(drain) is False
    assert drains.expect("acme", "a", now + 2) == Expected(mine=True), "the lease took the announcement away"
    drains.take(drain, now + 2)
    assert drains.expect("acme", "a", now + 9_000) == Expected(mine=True), "who held the lease has died"
    assert drains.expect("acme", "a", now + 9_000) == Expected(mine=False)
    assert drains.of("acme") == [drain]
    next_one = DrainLease("acme", "a", "h2", now + 9_000, now + 18_000)
    assert drains.take(next_one, now + 9_000) == LeaseTaken(True, drain)
    assert drains.end(next_one) is False


def test_who_stands_in_line_keeps_its_place(stores: Stores) -> None:
    first = WaitingTarget("acme", "b", 100, slow=True)
    stores.line.wait(first)
    stores.line.wait(WaitingTarget("acme", "b", 200))
    stores.line.wait(WaitingTarget("acme", "a", 150))
    stores.line.wait(WaitingTarget("other", "c", 1))
    assert stores.line.waiting("acme") == [WaitingTarget("acme", "a", 150), replace(first, slow=False)]
    assert [one.seen_ms for one in stores.line.waiting("acme")] == [150, 200], "its place is old, and it is there"
    stores.line.leave("acme", "b")
    stores.line.leave("acme", "nobody")
    assert [one.target_id for one in stores.line.waiting("acme")] == ["a"]


def test_whether_a_target_is_quick_is_kept_beside_how_it_fares(stores: Stores) -> None:
    made = target("a")
    stores.directory.put(made, None)
    assert stores.states.get(made.key).quick is False, "nobody has tried it yet"
    stores.paces.pace(made.key, quick=True)
    stores.states.fare(made.key, Circuit(1, 0), "answered 500")
    stores.states.pause(made.key, "gone")
    assert stores.states.get(made.key) == TargetState(Circuit(1, 0), "gone", "", "answered 500", quick=True)
    stores.paces.pace(made.key, quick=False)
    assert stores.directory.of("acme")[0].state.quick is False
