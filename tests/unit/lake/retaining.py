"""A hub whose events are committed, read, archived and compacted, for the tests of retention."""

from __future__ import annotations

import gzip
import json

from millrace.lake.adapters.memory.policies import MemoryPolicies
from millrace.lake.application.compacted import compacted
from millrace.lake.application.plan_retention import PlanRetention
from millrace.lake.application.retain_events import PruneRanges, RetainEvents, RetentionReport
from millrace.lake.domain.edition import POINTER, PROCESSED, Edition, File, Segment
from millrace.lake.domain.retention import WHOLE
from millrace.lake.domain.retention_rules import Change, Scope
from millrace.lake.ports.retention import Holder
from millrace.ledger.adapters.memory import in_turn
from tests.unit.lake.archiving import Fate, Hub, Mortal

DEMO = "sync#t#demo"


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


def set_rule(
    policies: MemoryPolicies, text: str = "demo", partition: str = WHOLE, contract: str = "sync", **rule: int
) -> None:
    assert policies.change(Scope("t", contract, text), Change(partition, **rule))  # type: ignore[arg-type]


def retained(hub: Hub, policies: MemoryPolicies, **holders: Holder) -> RetentionReport:
    return use_case(hub, policies, None, **holders)(dry_run=False)
