"""The archive's reservations and retention's rules: one contract for memory, moto and the embedded stack."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from moto import mock_aws

from millrace.lake.adapters.dynamodb.lanes import DynamoLanes
from millrace.lake.adapters.dynamodb.policies import DynamoPolicies
from millrace.lake.adapters.memory.lanes import MemoryLanes
from millrace.lake.adapters.memory.policies import MemoryPolicies
from millrace.lake.domain.retention import WHOLE
from millrace.lake.domain.retention_rules import Change, Rule, Scope
from millrace.lake.ports.lanes import Lane, Lanes, Reservation
from millrace.lake.ports.retention import Policies
from millrace.ledger.domain.errors import BadRequest
from tests.support.aws_tables import client_for, client_of, create_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class Adapters:
    lanes: Lanes
    policies: Policies


@pytest.fixture(params=["memory", "moto", "embedded", "lean"])
def adapters(request: pytest.FixtureRequest) -> Iterator[Adapters]:
    yield from _adapters(request)


@pytest.fixture(params=["memory", "embedded", "lean"])
def racing(request: pytest.FixtureRequest) -> Iterator[Adapters]:
    """moto loses updates under threads."""
    yield from _adapters(request)


def _adapters(request: pytest.FixtureRequest) -> Iterator[Adapters]:
    if request.param == "memory":
        yield Adapters(MemoryLanes(), MemoryPolicies())
    elif request.param == "moto":
        with mock_aws():
            yield _on_dynamodb(client_for(None))
    else:
        yield _on_dynamodb(client_of(request))


def _on_dynamodb(client: DynamoDBClient) -> Adapters:
    tables = create_tables(client)
    return Adapters(DynamoLanes(tables.client, tables.state), DynamoPolicies(tables.client, tables.state))


RESERVATION = Reservation("ledger/x.jsonl.gz", {"sync#t#a": (1, 7), "catalog#t#é %#": (1025, 1026)}, 9)


def test_a_lane_begins_empty_and_remembers_its_reservation(adapters: Adapters) -> None:
    assert adapters.lanes.load(0) == Lane(0, None)
    assert adapters.lanes.store(0, Lane(1, RESERVATION))
    assert adapters.lanes.load(0) == Lane(1, RESERVATION)
    assert adapters.lanes.load(1) == Lane(0, None)
    assert adapters.lanes.store(0, Lane(2))
    assert adapters.lanes.load(0) == Lane(2, None)


@pytest.mark.parametrize("version", [1, 2, 4, 9])
def test_only_the_next_version_of_a_lane_is_stored(adapters: Adapters, version: int) -> None:
    for number in (1, 2):
        adapters.lanes.store(0, Lane(number, RESERVATION))
    assert not adapters.lanes.store(0, Lane(version))
    assert adapters.lanes.load(0) == Lane(2, RESERVATION)


def test_of_many_that_reserve_at_once_one_does(racing: Adapters) -> None:
    with ThreadPoolExecutor(12) as pool:
        stored = list(pool.map(lambda n: racing.lanes.store(0, Lane(1, Reservation(f"{n}", {}, n))), range(12)))
    assert stored.count(True) == 1
    assert racing.lanes.load(0).reservation == Reservation(f"{stored.index(True)}", {}, stored.index(True))


def scope(text: str = "demo") -> Scope:
    return Scope(f"tenant-{uuid.uuid4().hex[:6]}", "sync", text)


def test_a_rule_keeps_what_a_change_does_not_name(adapters: Adapters) -> None:
    of, policies = scope(), adapters.policies
    assert policies.get(of) == {}
    assert policies.change(of, Change(advance_to=5, max_age_days=30))
    assert policies.change(of, Change(max_events=100))
    assert policies.get(of) == {WHOLE: Rule(5, 30, 100)}
    assert policies.change(of, Change(removed=frozenset({"max_age_days", "max_events"})))
    assert policies.get(of) == {WHOLE: Rule(5, None, None)}


def test_a_watermark_never_goes_back_and_takes_nothing_along(adapters: Adapters) -> None:
    """C8"""
    of, policies = scope(), adapters.policies
    assert policies.change(of, Change("orders", advance_to=5))
    assert not policies.change(of, Change("orders", advance_to=4, max_age_days=1))
    assert policies.get(of) == {"orders": Rule(5)}
    assert policies.change(of, Change("orders", advance_to=5, max_age_days=1))
    assert policies.change(of, Change("orders", advance_to=6))
    assert policies.get(of) == {"orders": Rule(6, 1)}


def test_scopes_partitions_and_tenants_are_kept_apart(adapters: Adapters) -> None:
    of, policies = scope("a"), adapters.policies
    longer = Scope(of.tenant, "sync", "a#b")
    policies.change(of, Change("b#", max_events=1))
    policies.change(longer, Change(max_events=2))
    policies.change(scope("a"), Change(max_events=3))
    assert policies.get(of) == {"b#": Rule(max_events=1)}
    assert policies.of_tenant(of.tenant) == {(of, "b#"): Rule(max_events=1), (longer, WHOLE): Rule(max_events=2)}


def test_rules_are_listed_page_by_page_and_of_one_contract(adapters: Adapters) -> None:
    of, policies = scope("a"), adapters.policies
    policies.change(of, Change("b#", max_events=1))
    policies.change(of, Change(max_events=2))
    policies.change(Scope(of.tenant, "sync", "a#b"), Change(max_events=3))
    policies.change(Scope(of.tenant, "catalog", "orders"), Change(max_events=4))
    policies.change(scope("a"), Change(max_events=5))

    def walked(contract: str | None, limit: int) -> list[int | None]:
        found, after = list[int | None](), ""
        for _ in range(9):
            page = policies.page(of.tenant, contract, after, limit)
            assert len(page.rules) <= limit
            found += [rule.max_events for _, _, rule in page.rules]
            if page.after is None:
                return found
            after = page.after
        raise AssertionError("it has no end")

    for limit in (1, 2, 50):
        assert walked(None, limit) == [4, 2, 1, 3]
        assert walked("sync", limit) == [2, 1, 3]
    for nowhere in ("nowhere", "catalog#orders#"):
        with pytest.raises(BadRequest) as refused:
            policies.page(of.tenant, "sync", nowhere, 5)
        assert refused.value.details["field"] == "after"
