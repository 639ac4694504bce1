"""C8: what an operator may say about retention, and which rule counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from millrace.lake.adapters.memory.policies import MemoryPolicies
from millrace.lake.application.set_retention import SetRetention
from millrace.lake.domain.retention import WHOLE
from millrace.lake.domain.retention_rules import Rule, Ruling, Scope, check_scope, ruling, scope_of
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import BadRequest, Conflict, Forbidden
from millrace.ledger.domain.names import join_key
from tests.unit.lake.archiving import Hub
from tests.unit.lake.retaining import DEMO

OPERATOR = Identity("C1", "t", frozenset({"demo"}), ("*",), frozenset({"operator"}), "t")


def door(hub: Hub, policies: MemoryPolicies) -> SetRetention:
    return SetRetention(policies, hub.log, hub.state, hub.heads)


def test_an_operator_lets_go_only_of_partitions_that_the_token_reaches() -> None:
    """S13, C8: what goes of a whole project goes from every partition of it."""
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    set_retention, narrow = door(hub, policies), replace(OPERATOR, partitions=("p*",))
    for change in ({"max_events": 1}, {"advance_to": 3}, {"partition": "orders", "advance_to": 3}):
        with pytest.raises(Forbidden) as refused:
            set_retention(narrow, "sync", "demo", change)
        assert refused.value.details["field"] == "partition"
    assert policies.get(Scope("t", "sync", "demo")) == {}
    set_retention(OPERATOR, "sync", "demo", {"partition": "orders", "advance_to": 2})
    answer = set_retention(narrow, "sync", "demo", {"partition": "p1", "advance_to": 3})
    shown = set_retention.read(narrow, "sync", "demo")["partitions"]
    assert [one["partition"] for one in shown] == [one["partition"] for one in answer["partitions"]] == ["p1"]


def test_a_policy_is_set_field_by_field_and_told() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    set_retention = door(hub, policies)
    set_retention(OPERATOR, "sync", "demo", {"max_age_days": 90})
    answer = set_retention(OPERATOR, "sync", "demo", {"partition": "orders", "advance_to": 7, "max_events": 10})
    assert answer == {
        "contract": "sync",
        "scope": "demo",
        "advance_to": 0,
        "max_age_days": 90,
        "max_events": None,
        "partitions": [{"partition": "orders", "advance_to": 7, "max_age_days": None, "max_events": 10}],
    }
    assert set_retention.read(OPERATOR, "sync", "demo") == answer
    assert set_retention(OPERATOR, "sync", "demo", {"max_age_days": None})["max_age_days"] is None


def test_a_watermark_that_would_go_back_is_a_conflict_and_names_the_stored_one() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    door(hub, policies)(OPERATOR, "sync", "demo", {"advance_to": 7})
    with pytest.raises(Conflict) as refused:
        door(hub, policies)(OPERATOR, "sync", "demo", {"advance_to": 6, "max_age_days": 1})
    assert refused.value.details == {"field": "advance_to", "advance_to": 7}
    assert policies.get(Scope("t", "sync", "demo")) == {WHOLE: Rule(7)}


@pytest.mark.parametrize(
    ("contract", "scope", "body", "field"),
    [
        ("sync", "demo", {}, "body"),
        ("sync", "demo", {"partition": "a"}, "body"),
        ("sync", "demo", [], "body"),
        ("sync", "demo", {"advance_to": 1, "more": 1}, "more"),
        ("sync", "demo", {"advance_to": -1}, "advance_to"),
        ("sync", "demo", {"advance_to": True}, "advance_to"),
        ("sync", "demo", {"advance_to": None}, "advance_to"),
        ("sync", "demo", {"advance_to": 10}, "advance_to"),
        ("sync", "demo", {"max_age_days": 0}, "max_age_days"),
        ("sync", "demo", {"max_age_days": 1.5}, "max_age_days"),
        ("sync", "demo", {"max_events": "9"}, "max_events"),
        ("sync", "demo", {"partition": "", "max_events": 9}, "partition"),
        ("sync", "demo", {"partition": 5, "max_events": 9}, "partition"),
        ("realtime", "s1", {"partition": "a", "max_events": 9}, "partition"),
        ("realtime", "s*", {"advance_to": 1}, "advance_to"),
        ("streams", "runtime", {"max_events": 9}, "scope"),
        ("streams", "a:b:c", {"max_events": 9}, "scope"),
        ("audit", "t", {"max_events": 9}, "contract"),
        ("sync", " ", {"max_events": 9}, "scope"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_field(contract: str, scope: str, body: Any, field: str) -> None:
    hub = Hub()
    hub.commit(DEMO, 9)
    with pytest.raises(BadRequest) as refused:
        door(hub, MemoryPolicies())(OPERATOR, contract, scope, body)
    assert refused.value.details["field"] == field


@pytest.mark.parametrize(
    ("contract", "scope", "partitions", "allowed"),
    [
        ("catalog", "orders", ("catalog:orders",), True),
        ("catalog", "orders", ("catalog:o*",), True),
        ("catalog", "o*", ("catalog:orders",), False),
        ("catalog", "o*", ("catalog:*",), True),
        ("realtime", "s1", ("session:s2",), False),
        ("streams", "rt:a", ("runtime:rt",), True),
        ("streams", "rt:*", ("runtime:rt",), True),
        ("streams", "rt*", ("runtime:rt",), False),
        ("delivery", "team", ("team:team",), True),
        ("sync", "other", ("*",), False),
    ],
)
def test_an_operator_rules_only_over_what_the_token_reaches(
    contract: str, scope: str, partitions: tuple[str, ...], allowed: bool
) -> None:
    identity = replace(OPERATOR, partitions=partitions)
    set_retention = door(Hub(), MemoryPolicies())
    if allowed:
        assert set_retention(identity, contract, scope, {"max_events": 1})["max_events"] == 1
        return
    with pytest.raises(Forbidden):
        set_retention(identity, contract, scope, {"max_events": 1})
    with pytest.raises(Forbidden):
        set_retention.read(identity, contract, scope)


def test_only_operators_rule() -> None:
    with pytest.raises(Forbidden):
        door(Hub(), MemoryPolicies()).read(replace(OPERATOR, roles=frozenset({"producer", "consumer"})), "sync", "demo")


@pytest.mark.parametrize("parts", [("a", "b"), ("a:b", "c"), ("a", "b:c"), ("a%3Ab", "c"), ("%", ":")])
def test_a_streams_scope_names_one_stream(parts: tuple[str, str]) -> None:
    name = join_key("streams", "t", *parts)
    scope = scope_of(name)
    assert scope.ledger == name
    assert check_scope("t", "streams", scope.text).parts == list(parts)


def rules(*given: tuple[str, str, Rule]) -> dict[tuple[Scope, str], Rule]:
    return {(Scope("t", "sync", text), partition): rule for text, partition, rule in given}


def test_without_a_rule_there_is_no_policy() -> None:
    assert ruling(DEMO, {}).is_empty
    assert ruling(DEMO, rules(("other", WHOLE, Rule(5)), ("dem", WHOLE, Rule(5)))).is_empty


def test_a_bound_comes_from_the_narrowest_scope_that_has_it_and_a_watermark_from_the_ledger_alone() -> None:
    found = ruling(
        DEMO,
        rules(
            ("*", WHOLE, Rule(9, 365, 7)),
            ("dem*", WHOLE, Rule(8, 30)),
            ("demo", WHOLE, Rule(5)),
            ("demo2", WHOLE, Rule(1, 1)),
        ),
    )
    assert found == Ruling(Rule(5, 30, 7))


def test_a_partitions_own_rule_counts_instead_of_the_whole_ledgers() -> None:
    found = ruling(DEMO, rules(("demo", WHOLE, Rule(9, 30)), ("*", "legal", Rule(0, 3650))))
    assert found == Ruling(Rule(9, 30), {"legal": Rule(0, 3650)})
