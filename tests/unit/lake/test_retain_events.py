"""C8, S13: what may go, and never what somebody still needs."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.lake.adapters.memory.policies import MemoryPolicies
from millrace.lake.application.retain_events import PruneRanges
from millrace.lake.domain.retention import WHOLE
from millrace.lake.domain.retention_rules import DAY_MS
from millrace.ledger.adapters.memory import MemoryLog
from millrace.ledger.application.prune import Pruned
from millrace.ledger.domain.errors import MillraceError
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Page
from millrace.ledger.domain.ranges import Ranges
from tests.unit.lake.archiving import Died, Fate, Hub
from tests.unit.lake.retaining import DEMO, caught_up, gone, retained, set_rule, use_case

CONSUMERS = ("archive", "fan_out", "index")


def test_nothing_goes_without_a_policy() -> None:
    hub = Hub()
    hub.commit(DEMO, 9)
    caught_up(hub)
    report = retained(hub, MemoryPolicies())
    assert (report.plans, report.manifest) == ([], None)
    assert gone(hub) == set()


def test_events_up_to_the_watermark_go_and_the_floor_rises() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    caught_up(hub)
    set_rule(policies, advance_to=4)
    report = retained(hub, policies)
    assert report.as_json()["removed"] == 4
    assert gone(hub) == {1, 2, 3, 4}
    assert hub.state.marks(Ledger.to_read(DEMO)).floor == 5
    assert not retained(hub, policies).removed, "there is nothing left to do"


@pytest.mark.parametrize("holder", CONSUMERS)
def test_nothing_goes_that_a_consumer_has_not_read(holder: str) -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    caught_up(hub)
    hub.state.cursors[DEMO][holder] = 3
    set_rule(policies, advance_to=9)
    report = retained(hub, policies)
    assert gone(hub) == {1, 2, 3}
    assert report.plans[0].held_by == holder


def test_a_ledger_without_an_index_does_not_wait_for_one() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit("realtime#t#s1", 4)
    caught_up(hub)
    del hub.state.cursors["realtime#t#s1"]["index"]
    set_rule(policies, "s1", contract="realtime", advance_to=4)
    retained(hub, policies)
    assert gone(hub, "realtime#t#s1") == {1, 2, 3, 4}


def test_a_target_holds_what_it_has_not_got() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    caught_up(hub)
    set_rule(policies, advance_to=9)
    report = retained(hub, policies, target=lambda _: 2, nobody=lambda _: None)
    assert gone(hub) == {1, 2}
    assert report.plans[0].as_json()["holders"] == {"archive": 9, "fan_out": 9, "index": 9, "target": 2}


def test_an_event_stays_while_one_of_its_partitions_needs_it() -> None:
    """S13"""
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9, partitions=(("a",), ("b",), ("a", "b")))
    caught_up(hub)
    set_rule(policies, partition="a", advance_to=9)
    set_rule(policies, partition="b", advance_to=2)
    report = retained(hub, policies)
    assert gone(hub) == {1, 2, 4, 7}
    assert report.plans[0].kept == 5
    assert hub.state.marks(Ledger.to_read(DEMO)).floor == 3
    set_rule(policies, partition="b", advance_to=9)
    retained(hub, policies)
    assert gone(hub) == set(range(1, 10))


def test_age_lets_go_of_what_is_older_and_of_nothing_behind_a_younger_page() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 6, per_page=2)
    hub.now += 40 * DAY_MS
    hub.commit(DEMO, 2)
    hub.now += 5 * DAY_MS
    caught_up(hub)
    set_rule(policies, "*", max_age_days=30)
    retained(hub, policies)
    assert gone(hub) == {1, 2, 3, 4, 5, 6}
    hub.now += 30 * DAY_MS
    retained(hub, policies)
    assert gone(hub) == set(range(1, 9))


def test_a_count_keeps_the_newest_of_a_ledger_or_of_a_partition() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 12, partitions=(("a",), ("b",)))
    caught_up(hub)
    set_rule(policies, max_events=4)
    set_rule(policies, partition="b", max_events=1)
    retained(hub, policies)
    assert gone(hub) == {1, 3, 5, 7, 2, 4, 6, 8, 10}


def test_a_dry_run_tells_what_would_go_and_changes_nothing() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    caught_up(hub)
    set_rule(policies, advance_to=4)
    before = dict(hub.objects.stored)
    report = use_case(hub, policies)(dry_run=True).as_json()
    assert (report["events"], report["removed"], report["manifest"]) == (4, 0, None)
    assert report["ledgers"][0]["goes"] == [[1, 4]]
    assert gone(hub) == set()
    assert hub.objects.stored == before


def test_a_manifest_tells_what_is_to_go_before_it_goes_and_what_went() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    caught_up(hub)
    set_rule(policies, advance_to=4)
    report = retained(hub, policies)
    assert report.manifest is not None
    (plan,) = json.loads(hub.objects.stored[f"{report.manifest}plan-0000.json"])
    assert (plan["ledger"], plan["goes"]) == (DEMO, [[1, 4]])
    assert json.loads(hub.objects.stored[f"{report.manifest}done.json"]) == {"removed": {DEMO: 4}, "complete": True}


@pytest.mark.parametrize("after_effect", [False, True])
def test_retention_may_die_at_any_call_and_the_next_run_goes_on(after_effect: bool) -> None:
    def world() -> tuple[Hub, MemoryPolicies]:
        hub, policies = Hub(), MemoryPolicies()
        hub.commit(DEMO, 9, partitions=(("a",), ("a", "b")))
        hub.commit("realtime#t#orders", 5)
        caught_up(hub)
        set_rule(policies, partition="a", advance_to=8)
        set_rule(policies, partition="b", advance_to=4)
        set_rule(policies, "orders", contract="realtime", advance_to=5)
        return hub, policies

    hub, policies = world()
    counting = Fate()
    use_case(hub, policies, counting)(dry_run=False)
    expected = gone(hub), gone(hub, "realtime#t#orders")
    assert expected == ({1, 2, 3, 4, 5, 7}, {1, 2, 3, 4, 5})
    for at in range(counting.calls):
        hub, policies = world()
        with pytest.raises((Died, MillraceError)):
            use_case(hub, policies, Fate(at, after_effect))(dry_run=False)
        planned = {
            (plan["ledger"], position)
            for name, data in hub.objects.stored.items()
            if "plan-" in name
            for plan in json.loads(data)
            for first, last in plan["goes"]
            for position in range(first, last + 1)
        }
        for ledger in (DEMO, "realtime#t#orders"):
            assert {(ledger, position) for position in gone(hub, ledger)} <= planned, "it went without a manifest"
        use_case(hub, policies)(dry_run=False)
        assert (gone(hub), gone(hub, "realtime#t#orders")) == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_nothing_goes_while_one_of_its_partitions_or_a_reader_needs_it(seed: int) -> None:
    """S13, C8: random ledgers, watermarks, ages and readers."""
    rng = random.Random(seed)
    hub, policies = Hub(), MemoryPolicies()
    names = ("a", "b", "c", "d")
    choices = [tuple(rng.sample(names, rng.randint(1, 4))) for _ in range(7)]
    count = rng.randint(1, 40)
    hub.commit(DEMO, count, partitions=choices, per_page=rng.randint(1, 9))
    caught_up(hub)
    held = {consumer: rng.choice((count, rng.randint(0, count))) for consumer in CONSUMERS}
    hub.state.cursors[DEMO] = dict(held)
    target = rng.choice((None, rng.randint(0, count)))
    marks = {name: rng.randint(0, count) for name in names if rng.random() < 0.8}
    whole = rng.choice((0, rng.randint(0, count)))
    for name, position in marks.items():
        set_rule(policies, partition=name, advance_to=position, max_age_days=1000)
    set_rule(policies, advance_to=whole)
    retained(hub, policies, target=lambda _: target)
    limit = min([*held.values(), count if target is None else target])
    expected = {
        position
        for (_, position), event in hub.events().items()
        if position <= limit and all(position <= marks.get(name, whole) for name in event.record.partitions)
    }
    assert gone(hub) == expected


def test_pruning_never_passes_a_cursor_whatever_it_is_told() -> None:
    hub = Hub()
    hub.commit(DEMO, 9)
    caught_up(hub)
    hub.state.cursors[DEMO]["archive"] = 4
    assert PruneRanges(hub.log, hub.state, lambda: True)(DEMO, Ranges(((1, 9),))) == Pruned(4, complete=False)
    assert gone(hub) == {1, 2, 3, 4}


def test_pruning_stops_when_time_is_up_and_goes_on_next_time() -> None:
    hub = Hub()
    hub.commit(DEMO, 3_000, per_page=100)
    caught_up(hub)
    turns = iter([True, False])
    assert PruneRanges(hub.log, hub.state, lambda: next(turns))(DEMO, Ranges(((1, 2_500),))).removed == 1_024
    assert hub.state.marks(Ledger.to_read(DEMO)).floor == 1_025
    assert PruneRanges(hub.log, hub.state, lambda: True)(DEMO, Ranges(((1, 2_500),))) == Pruned(1_476, complete=True)


class Contended(MemoryLog):
    """Another pruner empties a page right before us, once for every page."""

    def __init__(self, pages: dict[str, dict[int, Page]]) -> None:
        super().__init__(pages)
        self.met: set[int] = set()

    def replace(self, ledger: Ledger, page: Page) -> bool:
        if page.first not in self.met:
            self.met.add(page.first)
            stored = next(one for one in self.read(ledger, page.first - 1).pages if one.first == page.first)
            assert super().replace(ledger, stored.emptied([page.first]))
        return super().replace(ledger, page)


def test_a_page_that_another_pruner_changed_is_read_again() -> None:
    """C8: nothing that may go is left because two prune at once."""
    hub = Hub()
    hub.commit(DEMO, 9, per_page=3)
    caught_up(hub)
    log = Contended(hub.log.pages)
    assert PruneRanges(log, hub.state, lambda: True)(DEMO, Ranges(((1, 9),))) == Pruned(6, complete=True)
    assert gone(hub) == set(range(1, 10))


@pytest.mark.parametrize(
    "policy",
    [
        {"max_age_days": 1},
        {"max_events": 5},
        {"partition": "a", "max_age_days": 1},
        {"partition": "a", "max_events": 2},
    ],
)
def test_a_watermark_does_not_go_back_when_the_floor_has_risen(policy: dict[str, Any]) -> None:
    """C8: what an interrupted run let go in the log, the next one still lets go in the tables."""
    hub, policies, everything = Hub(), MemoryPolicies(), MemoryPolicies()
    hub.commit(DEMO, 1_024, partitions=(("a",),), per_page=100)
    hub.now += 2 * DAY_MS
    hub.commit(DEMO, 5, partitions=(("b",),))
    caught_up(hub)
    set_rule(policies, **policy)
    set_rule(everything, advance_to=1_024)

    def watermark() -> int:
        (plan,) = use_case(hub, policies)(dry_run=True).plans
        return plan.release.partitions.get(policy.get("partition", WHOLE), plan.release.watermark)

    before = watermark()
    assert use_case(hub, everything)(dry_run=False).removed == {DEMO: 1_024}
    assert 0 < before <= watermark()
