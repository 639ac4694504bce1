"""C8: nothing goes that is not in the tables yet: what waits for compaction or lies in quarantine is held."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.adapters.memory.policies import MemoryPolicies
from millrace.lake.application.compacted import compacted
from millrace.lake.application.quarantine import REDRIVEN, Redrive
from millrace.lake.domain.archive import CORRUPT_OBJECT, FOREIGN_OBJECT, read_lines
from millrace.lake.domain.edition import QUARANTINE, Edition, File, Segment
from millrace.lake.ports.objects import ListedObject
from millrace.lake.ports.retention import Holder
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from tests.unit.lake.archiving import Hub
from tests.unit.lake.retaining import DEMO, caught_up, compact, gone, retained, set_rule, use_case


def test_nothing_goes_before_compaction_has_it() -> None:
    hub, policies = Hub(), MemoryPolicies()
    hub.commit(DEMO, 6)
    hub.archiver()(hub.ledgers())
    set_rule(policies, advance_to=6)
    for consumer in ("fan_out", "index"):
        hub.state.move_cursor(Ledger.to_read(DEMO), consumer, 0, 6)
    report = retained(hub, policies)
    assert (gone(hub), report.plans[0].held_by) == (set(), "compaction"), "it has never run"
    caught_up(hub)
    hub.commit(DEMO, 3)
    hub.archiver()(hub.ledgers())
    for consumer in ("fan_out", "index"):
        hub.state.move_cursor(Ledger.to_read(DEMO), consumer, 6, 9)
    set_rule(policies, advance_to=9)
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
    set_rule(policies, advance_to=6)
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
    set_rule(policies, advance_to=6)
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
    set_rule(policies, advance_to=6)
    set_rule(policies, "s1", contract="realtime", advance_to=2)
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
    set_rule(policies, advance_to=6)
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
    set_rule(policies, advance_to=6)
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
    set_rule(policies, advance_to=6)
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
        def list(self, prefix: str, after: str = "") -> Iterator[ListedObject]:
            yield from list(super().list(prefix, after))
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
    set_rule(policies, advance_to=6)
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
    set_rule(policies, advance_to=6)

    def late() -> Holder:
        taken = compacted(hub.objects)
        hub.archiver()(hub.ledgers())
        return taken

    replace(use_case(hub, policies), compacted=late)(dry_run=False)
    assert gone(hub) == {1, 2, 3}
