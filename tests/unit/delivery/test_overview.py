"""Status on every journal: the counts it is made of, and what an operator reads in it (D11)."""

from __future__ import annotations

from functools import partial

from millrace.delivery.adapters.memory.targets import MemoryTargets
from millrace.delivery.domain.families import Families, Family
from millrace.delivery.domain.targets import Target
from millrace_client.journal.collect import Gc
from millrace_client.journal.delivery_status import DeliveryStatus
from millrace_client.journal.memory.ledger import MemoryLedger
from millrace_client.journal.memory.overview import MemoryOverview
from millrace_client.journal.ports import Overview
from millrace_client.journal.sqlite.ledger import LEDGER, SqliteLedger
from millrace_client.journal.sqlite.overview import SqliteOverview
from tests.support.worlds import A, B, Scripted, World, event, results

C = Target("c", "stub", prefixes=frozenset({"order."}))


def overview(world: World) -> Overview:
    if isinstance(world.ledger, SqliteLedger):
        return SqliteOverview(world.ledger.database)
    assert isinstance(world.ledger, MemoryLedger)
    assert isinstance(world.states, MemoryTargets)
    return MemoryOverview(world.ledger, LEDGER, world.states)


def status(world: World, current: list[str], suggest: int = 10**9) -> dict[str, object]:
    collectable = partial(Gc(world.payloads, world.clock), dry_run=True)
    made = DeliveryStatus(overview(world), world.deliveries, world.imports.conflicts, collectable, suggest)
    return made(current)


def test_the_counts_of_the_journal_and_of_each_target(world: World) -> None:
    world.families = Families({"here.": Family.LOCAL_ONLY})
    world.capture("e1", "e2", "e3", "e4")
    world.capture("h", kind="here.note")
    world.capture("k1", key="k")
    world.capture("k2", key="k")
    world.drain(Scripted(), A)
    world.drain(Scripted([results(e1="success", e2="terminal_failed", e3="rejected", e4="pending", k2="duplicate")]), B)
    world.know(C)
    world.capture("o", kind="order.paid")
    counts = overview(world).journal()
    assert (counts.captured, counts.retained, counts.superseded, counts.local_only) == (8, 8, 1, 1)
    by_id = {one.target.id: one for one in overview(world).targets()}
    assert {name: one.unattempted for name, one in by_id.items()} == {"a": 1, "b": 1, "c": 1}
    assert by_id["b"].statuses == {
        "success": 1,
        "terminal_failed": 1,
        "rejected": 1,
        "pending": 1,
        "duplicate": 1,
    }
    Gc(world.payloads, world.clock)()
    counts = overview(world).journal()
    assert (counts.captured, counts.retained) == (8, 5), "e1, k2 and what k2 replaced went"
    assert counts.retained_bytes > 3 * len(event("e2"))


def test_current_and_earlier_targets_are_counted_apart(world: World) -> None:
    world.capture("e1", "e2")
    world.drain(Scripted(), A)
    world.drain(Scripted([results(e1="success", e2="terminal_failed")]), B)
    ledger = status(world, ["b"])["delivery_ledger"]
    assert isinstance(ledger, dict)
    assert ledger["current_target_delivered_count"] == 1
    assert ledger["previous_target_delivered_count"] == 2
    assert ledger["terminal_failed_count"] == 1
    failures = status(world, ["b"])["terminal_failures"]
    assert isinstance(failures, dict)
    assert [(one["target"], one["event_id"]) for one in failures["failures"]] == [("b", "e2")]


def test_gc_is_suggested_from_a_size_on(world: World) -> None:
    world.capture("e1")
    world.drain(Scripted(), A)
    size = len(event("e1"))
    for enough, suggested in ((size, True), (size + 1, False)):
        journal = status(world, ["a"], enough)["event_journal"]
        assert isinstance(journal, dict)
        assert (journal["suggestion"] is not None) is suggested
