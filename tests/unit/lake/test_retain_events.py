"""C8, S13: what an operator may say, which rule counts, and what may go: never what somebody still needs."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.adapters.memory.policies import MemoryPolicies
from millrace.lake.application.compacted import compacted
from millrace.lake.application.plan_retention import PlanRetention
from millrace.lake.application.quarantine import REDRIVEN, Redrive
from millrace.lake.application.retain_events import PruneRanges, RetainEvents, RetentionReport
from millrace.lake.application.set_retention import SetRetention
from millrace.lake.domain.archive import CORRUPT_OBJECT, FOREIGN_OBJECT, read_lines
from millrace.lake.domain.edition import POINTER, PROCESSED, QUARANTINE, Edition, File, Segment
from millrace.lake.domain.retention import WHOLE
from millrace.lake.domain.retention_rules import DAY_MS, Change, Rule, Ruling, Scope, check_scope, ruling, scope_of
from millrace.lake.ports.objects import ListedObject
from millrace.lake.ports.retention import Holder
from millrace.ledger.adapters.memory import MemoryLog, in_turn
from millrace.ledger.application.prune import Pruned
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import BadRequest, Conflict, Forbidden, MillraceError, Unavailable
from millrace.ledger.domain.names import Ledger, join_key
from millrace.ledger.domain.page import Page
from millrace.ledger.domain.ranges import Ranges
from tests.unit.lake.archiving import Died, Fate, Hub, Mortal

DEMO = "sync#t#demo"
OPERATOR = Identity("C1", "t", frozenset({"demo"}), ("*",), frozenset({"operator"}), "t")
CONSUMERS = ("archive", "fan_out", "index")


def door(hub: Hub, policies: MemoryPolicies) -> SetRetention:
    return SetRetention(policies, hub.log, hub.state, hub.heads)


def caught_up(hub: Hub, through: int | None = None) -> None:
    """Every consumer has read it all, and compaction has run."""
    hub.archiver()(hub.ledgers())
    for ledger in hub.ledgers():
        head = max(page.end for page in hub.log.pages[ledger.name].values())
        for consumer in ("fan_out", "index"):
            before = hub.state.marks(ledger).cursors.get(consumer, 0)
            hub.state.move_cursor(ledger, consumer, before, head if through is None else through)
    compact(hub)


def compact(hub: Hub) -> None:
    """What compaction leaves behind, as far as retention looks at it."""
    names = [listed.name for listed in hub.objects.list("ledger/")]
    hub.objects.stored["lake/runs/r/processed/names.json.gz"] = gzip.compress(json.dumps(names).encode())
    segment = Segment("r", len(names), (File("lake/runs/r/processed/names.json.gz", 1),))
    edition = Edition(1, "r").having(PROCESSED, [segment])
    hub.objects.stored[edition.manifest] = edition.to_json()
    hub.objects.stored[POINTER] = json.dumps({"manifest": edition.manifest, "number": 1}).encode()


def use_case(hub: Hub, policies: MemoryPolicies, fate: Fate | None = None, **holders: Holder) -> RetainEvents:
    fate = fate or Fate()
    state = Mortal(hub.state, fate)
    log = Mortal(hub.log, fate)
    objects = Mortal(hub.objects, fate)
    return RetainEvents(
        policies,
        PlanRetention(log, hub.heads, lambda: hub.now),
        state,
        PruneRanges(log, state, lambda: True),
        lambda: compacted(hub.objects),
        holders,
        objects,
        in_turn,
        lambda: hub.now,
        lambda: "run",
        lambda: True,
    )


def gone(hub: Hub, ledger: str = DEMO) -> set[int]:
    return {
        position for (name, position), event in hub.events().items() if name == ledger and event.record.body is None
    }


def said(
    policies: MemoryPolicies, text: str = "demo", partition: str = WHOLE, contract: str = "sync", **rule: int
) -> None:
    assert policies.change(Scope("t", contract, text), Change(partition, **rule))  # type: ignore[arg-type]


def retained(hub: Hub, policies: MemoryPolicies, **holders: Holder) -> RetentionReport:
    return use_case(hub, policies, None, **holders)(dry_run=False)


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
    told = set_retention(narrow, "sync", "demo", {"partition": "p1", "advance_to": 3})
    shown = set_retention.read(narrow, "sync", "demo")["partitions"]
    assert [one["partition"] for one in shown] == [one["partition"] for one in told["partitions"]] == ["p1"]


def test_a_policy_is_set_field_by_field_and_told() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    set_retention = door(hub, policies)
    set_retention(OPERATOR, "sync", "demo", {"max_age_days": 90})
    told = set_retention(OPERATOR, "sync", "demo", {"partition": "orders", "advance_to": 7, "max_events": 10})
    assert told == {
        "contract": "sync",
        "scope": "demo",
        "advance_to": 0,
        "max_age_days": 90,
        "max_events": None,
        "partitions": [{"partition": "orders", "advance_to": 7, "max_age_days": None, "max_events": 10}],
    }
    assert set_retention.read(OPERATOR, "sync", "demo") == told
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
    said(policies, advance_to=4)
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
    said(policies, advance_to=9)
    report = retained(hub, policies)
    assert gone(hub) == {1, 2, 3}
    assert report.plans[0].held_by == holder


def test_a_ledger_without_an_index_does_not_wait_for_one() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit("realtime#t#s1", 4)
    caught_up(hub)
    del hub.state.cursors["realtime#t#s1"]["index"]
    said(policies, "s1", contract="realtime", advance_to=4)
    retained(hub, policies)
    assert gone(hub, "realtime#t#s1") == {1, 2, 3, 4}


def test_nothing_goes_before_compaction_has_it() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 6)
    hub.archiver()(hub.ledgers())
    said(policies, advance_to=6)
    for consumer in ("fan_out", "index"):
        hub.state.move_cursor(Ledger.to_read(DEMO), consumer, 0, 6)
    report = retained(hub, policies)
    assert (gone(hub), report.plans[0].held_by) == (set(), "compaction"), "it has never run"
    caught_up(hub)
    hub.commit(DEMO, 3)
    hub.archiver()(hub.ledgers())
    for consumer in ("fan_out", "index"):
        hub.state.move_cursor(Ledger.to_read(DEMO), consumer, 6, 9)
    said(policies, advance_to=9)
    report = retained(hub, policies)
    assert (gone(hub), report.plans[0].held_by) == ({1, 2, 3, 4, 5, 6}, "compaction"), "an object waits for it"


def quarantine(hub: Hub, name: str, reason: str, **more: Any) -> None:
    entry = {"id": "x", "reason": reason, "object": name, **more}
    hub.objects.stored["lake/runs/r/quarantine/x.gz"] = gzip.compress(json.dumps(entry).encode())
    current = Edition.parse(hub.objects.stored[Edition(1, "r").manifest])
    segment = Segment("r", 1, (File("lake/runs/r/quarantine/x.gz", 1),))
    hub.objects.stored[current.manifest] = current.having(QUARANTINE, [segment]).to_json()


def test_nothing_goes_while_an_object_cannot_be_read() -> None:
    """What it held may be in the log alone."""
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 6)
    caught_up(hub)
    said(policies, advance_to=6)
    (name,) = (listed.name for listed in hub.objects.list("ledger/"))
    quarantine(hub, name, CORRUPT_OBJECT)
    with pytest.raises(Unavailable, match="refill"):
        retained(hub, policies)
    assert gone(hub) == set()
    del hub.objects.stored[name]
    retained(hub, policies)
    assert gone(hub) == {1, 2, 3, 4, 5, 6}


def test_nothing_goes_from_an_event_in_quarantine_on() -> None:
    """C7: it is in no table until it is driven again and compacted."""
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 6)
    caught_up(hub)
    said(policies, advance_to=6)
    (name,) = (listed.name for listed in hub.objects.list("ledger/"))
    quarantine(hub, name, "unknown_version", ledger=DEMO, sequence_position=4, sha256="s")
    report = retained(hub, policies)
    assert (gone(hub), report.plans[0].held_by) == ({1, 2, 3}, "compaction")
    hub.objects.stored[f"{REDRIVEN}x.json"] = json.dumps({"object": name, "ids": ["x"]}).encode()
    retained(hub, policies)
    assert gone(hub) == {1, 2, 3, 4, 5, 6}


@pytest.mark.parametrize("position", [None, 0, -3])
def test_nothing_of_a_ledger_goes_while_a_line_of_it_in_quarantine_tells_no_position(position: int | None) -> None:
    """C8: which event it was nobody knows."""
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 6)
    hub.commit("realtime#t#s1", 2)
    caught_up(hub)
    said(policies, advance_to=6)
    said(policies, "s1", contract="realtime", advance_to=2)
    name = next(hub.objects.list("ledger/")).name
    quarantine(hub, name, "malformed", ledger=DEMO, sequence_position=position, sha256="s")
    report = retained(hub, policies)
    assert (gone(hub), gone(hub, "realtime#t#s1")) == (set(), {1, 2})
    assert {plan.ledger.name: plan.held_by for plan in report.plans}[DEMO] == "compaction"
    assert compacted(hub.objects)(Ledger.to_read(DEMO)) == 0


@pytest.mark.parametrize("ledger", [None, "", "5"])
def test_nothing_goes_while_a_line_in_quarantine_tells_no_ledger(ledger: str | None) -> None:
    """C8: its event may be any ledger's. The error says which entry to repair."""
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 6)
    caught_up(hub)
    said(policies, advance_to=6)
    (name,) = (listed.name for listed in hub.objects.list("ledger/"))
    quarantine(hub, name, "malformed", ledger=ledger, sequence_position=4, sha256="s")
    with pytest.raises(Unavailable, match="millrace quarantine repair x") as held:
        retained(hub, policies)
    assert held.value.details == {"object": name, "entry": "x"}
    assert gone(hub) == set()
    hub.objects.stored[f"{REDRIVEN}x.json"] = json.dumps({"object": name, "ids": ["x"]}).encode()
    retained(hub, policies)
    assert gone(hub) == {1, 2, 3, 4, 5, 6}


def test_a_line_without_a_ledger_holds_nothing_once_its_object_is_gone() -> None:
    """C8: as with an object that cannot be read, what it held was refilled before it was removed."""
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 6)
    caught_up(hub)
    said(policies, advance_to=6)
    quarantine(hub, "ledger/0-gone.jsonl.gz", "malformed", sha256="s")
    retained(hub, policies)
    assert gone(hub) == {1, 2, 3, 4, 5, 6}


@pytest.mark.parametrize(
    "line",
    [
        '{"a":1}',
        "[1]",
        "5",
        "null",
        '{"ledger":["x"]}',
        '{"ledger":""}',
        '{"ledger":"x","sequence_position":"7"}',
        '{"ledger":"x","sequence_position":true}',
        '{"ledger":"x","sequence_position":0}',
        '{"ledger":"x","sequence_position":7}\n{"ledger":"x","sequence_position":[8]}',
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_nothing_goes_while_an_object_that_waits_for_compaction_has_a_line_that_is_no_event(line: str) -> None:
    """C8: compaction will set it aside, and then it is known which ledger it holds."""
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 6)
    caught_up(hub)
    said(policies, advance_to=6)
    hub.objects.stored["ledger/0-x.jsonl.gz"] = gzip.compress(f"{line}\n".encode())
    with pytest.raises(Unavailable, match="cannot be read") as held:
        retained(hub, policies)
    assert held.value.details["object"] == "ledger/0-x.jsonl.gz"
    assert gone(hub) == set()


@pytest.mark.parametrize("listed", ["ledger/", REDRIVEN])
def test_an_event_that_is_driven_again_meanwhile_is_held_still(listed: str) -> None:
    """C8: it leaves quarantine, and its new object waits for compaction; one of the two is seen."""
    hub = Hub()
    hub.commit(DEMO, 6)
    caught_up(hub)
    (name,) = (listed.name for listed in hub.objects.list("ledger/"))
    fourth = [line for line in read_lines(hub.objects.stored[name]) if line["sequence_position"] == 4]
    quarantine(hub, name, "unknown_version", ledger=DEMO, sequence_position=4, sha256="s")

    class DrivenAgainAfterAListing(MemoryObjects):
        def list(self, prefix: str) -> Iterator[ListedObject]:
            yield from list(super().list(prefix))
            if prefix == listed:
                Redrive(hub.objects)(["x"], {"x": fourth})

    objects = DrivenAgainAfterAListing()
    objects.stored = hub.objects.stored
    assert compacted(objects)(Ledger.to_read(DEMO)) == 3
    assert any(hub.objects.list(REDRIVEN))
    assert compacted(hub.objects)(Ledger.to_read(DEMO)) == 3, "its new object waits"


def test_an_object_that_is_none_of_the_archives_holds_nothing() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 6)
    caught_up(hub)
    said(policies, advance_to=6)
    hub.objects.stored["ledger/readme.txt"] = b"?"
    compact(hub)
    quarantine(hub, "ledger/readme.txt", FOREIGN_OBJECT)
    retained(hub, policies)
    assert gone(hub) == {1, 2, 3, 4, 5, 6}


def test_what_is_archived_after_the_cursors_were_read_does_not_count_as_compacted() -> None:
    """Its object is not in the list that compaction's position comes from."""
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 3)
    caught_up(hub)
    hub.commit(DEMO, 3)
    for consumer in ("fan_out", "index"):
        hub.state.move_cursor(Ledger.to_read(DEMO), consumer, 3, 6)
    said(policies, advance_to=6)

    def late() -> Holder:
        taken = compacted(hub.objects)
        hub.archiver()(hub.ledgers())
        return taken

    replace(use_case(hub, policies), compacted=late)(dry_run=False)
    assert gone(hub) == {1, 2, 3}


def test_a_target_holds_what_it_has_not_got() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    caught_up(hub)
    said(policies, advance_to=9)
    report = retained(hub, policies, target=lambda _: 2, nobody=lambda _: None)
    assert gone(hub) == {1, 2}
    assert report.plans[0].as_json()["holders"] == {"archive": 9, "fan_out": 9, "index": 9, "target": 2}


def test_an_event_stays_while_one_of_its_partitions_needs_it() -> None:
    """S13"""
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9, partitions=(("a",), ("b",), ("a", "b")))
    caught_up(hub)
    said(policies, partition="a", advance_to=9)
    said(policies, partition="b", advance_to=2)
    report = retained(hub, policies)
    assert gone(hub) == {1, 2, 4, 7}
    assert report.plans[0].kept == 5
    assert hub.state.marks(Ledger.to_read(DEMO)).floor == 3
    said(policies, partition="b", advance_to=9)
    retained(hub, policies)
    assert gone(hub) == set(range(1, 10))


def test_age_lets_go_of_what_is_older_and_of_nothing_behind_a_younger_page() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 6, per_page=2)
    hub.now += 40 * DAY_MS
    hub.commit(DEMO, 2)
    hub.now += 5 * DAY_MS
    caught_up(hub)
    said(policies, "*", max_age_days=30)
    retained(hub, policies)
    assert gone(hub) == {1, 2, 3, 4, 5, 6}
    hub.now += 30 * DAY_MS
    retained(hub, policies)
    assert gone(hub) == set(range(1, 9))


def test_a_count_keeps_the_newest_of_a_ledger_or_of_a_partition() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 12, partitions=(("a",), ("b",)))
    caught_up(hub)
    said(policies, max_events=4)
    said(policies, partition="b", max_events=1)
    retained(hub, policies)
    assert gone(hub) == {1, 3, 5, 7, 2, 4, 6, 8, 10}


def test_a_dry_run_tells_what_would_go_and_changes_nothing() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    caught_up(hub)
    said(policies, advance_to=4)
    before = dict(hub.objects.stored)
    told = use_case(hub, policies)(dry_run=True).as_json()
    assert (told["events"], told["removed"], told["manifest"]) == (4, 0, None)
    assert told["ledgers"][0]["goes"] == [[1, 4]]
    assert gone(hub) == set()
    assert hub.objects.stored == before


def test_a_manifest_tells_what_is_to_go_before_it_goes_and_what_went() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 9)
    caught_up(hub)
    said(policies, advance_to=4)
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
        said(policies, partition="a", advance_to=8)
        said(policies, partition="b", advance_to=4)
        said(policies, "orders", contract="realtime", advance_to=5)
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
        said(policies, partition=name, advance_to=position, max_age_days=1000)
    said(policies, advance_to=whole)
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
    said(policies, **policy)
    said(everything, advance_to=1_024)

    def watermark() -> int:
        (plan,) = use_case(hub, policies)(dry_run=True).plans
        return plan.release.partitions.get(policy.get("partition", WHOLE), plan.release.watermark)

    before = watermark()
    assert use_case(hub, everything)(dry_run=False).removed == {DEMO: 1_024}
    assert 0 < before <= watermark()
