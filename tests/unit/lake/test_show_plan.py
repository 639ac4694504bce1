"""C8: what an operator sees of retention before it runs: the rules, what would go, and who holds back the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from infra.openapi.retention_models import RetentionPlan
from millrace.lake.adapters.memory.policies import MemoryPolicies
from millrace.lake.application.plan_retention import PlanRetention
from millrace.lake.application.set_retention import SetRetention
from millrace.lake.application.show_plan import ShowPlan
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import BadRequest, Forbidden
from tests.unit.lake.archiving import Hub
from tests.unit.lake.retaining import DEMO, caught_up, set_rule, use_case

OPERATOR = Identity("C1", "t", frozenset({"demo"}), ("*",), frozenset({"operator"}), "t")


def retention(hub: Hub, policies: MemoryPolicies) -> SetRetention:
    return SetRetention(policies, hub.log, hub.state, hub.heads)


def shown(hub: Hub, policies: MemoryPolicies, most_pages: int | None = None, **targets: int) -> dict[str, Any]:
    plan = PlanRetention(hub.log, hub.heads, lambda: hub.now, most_pages)
    answer = ShowPlan(retention(hub, policies), plan, lambda _, __: targets)(OPERATOR, "sync", "demo")
    RetentionPlan.model_validate(answer)
    return answer


def test_a_plan_names_what_a_run_would_prune_and_who_holds_back_the_rest() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    caught_up(hub)
    set_rule(policies, advance_to=7)
    free = shown(hub, policies)
    assert (free["goes"], free["events"], free["held_by"], free["complete"]) == ([[1, 7]], 7, "watermarks", True)
    [planned] = use_case(hub, policies)(dry_run=True).plans
    assert [list(span) for span in planned.goes] == free["goes"], "as the run itself finds it"
    held = shown(hub, policies, **{"target:slow": 4})
    assert (held["goes"], held["held_by"], held["holders"]["target:slow"]) == ([[1, 4]], "target:slow", 4)


def test_a_plan_of_a_long_ledger_says_that_it_is_not_all_and_never_names_too_much() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 30)
    caught_up(hub)
    set_rule(policies, advance_to=20)
    whole, some = shown(hub, policies), shown(hub, policies, most_pages=2)
    assert (whole["goes"], whole["complete"]) == ([[1, 20]], True)
    assert (some["goes"], some["complete"]) == ([[1, 6]], False)


def test_a_plan_is_of_one_ledger_that_the_token_reaches_as_a_whole() -> None:
    hub, policies = Hub(), MemoryPolicies()
    plan = ShowPlan(retention(hub, policies), PlanRetention(hub.log, hub.heads, lambda: hub.now), lambda _, __: {})
    with pytest.raises(BadRequest):
        plan(OPERATOR, "realtime", "s*")
    for narrow in (replace(OPERATOR, projects=frozenset()), replace(OPERATOR, partitions=("orders",))):
        with pytest.raises(Forbidden):
            plan(narrow, "sync", "demo")
    with pytest.raises(Forbidden):
        plan(replace(OPERATOR, roles=frozenset({"consumer"})), "sync", "demo")


def test_rules_are_listed_as_far_as_the_token_reaches() -> None:
    hub, policies = Hub(), MemoryPolicies()
    set_rule(policies, max_events=5)
    set_rule(policies, partition="orders", max_events=6)
    set_rule(policies, partition="users", max_events=7)
    set_rule(policies, "other", max_events=8)
    set_rule(policies, "s1", contract="realtime", max_age_days=9)
    door = retention(hub, policies)

    def seen(identity: Identity, contract: str | None = None) -> list[tuple[str, str | None]]:
        return [(one["scope"], one["partition"]) for one in door.list(identity, contract, "", 100)["policies"]]

    assert seen(OPERATOR) == [("s1", None), ("demo", None), ("demo", "orders"), ("demo", "users")]
    assert seen(OPERATOR, "realtime") == [("s1", None)]
    assert seen(replace(OPERATOR, partitions=("orders",))) == [("demo", None), ("demo", "orders")]
    assert seen(replace(OPERATOR, tenant="u")) == []
    with pytest.raises(BadRequest):
        door.list(OPERATOR, "audit", "", 100)
    with pytest.raises(Forbidden):
        door.list(replace(OPERATOR, roles=frozenset()), None, "", 100)
