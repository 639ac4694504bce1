"""Long random histories: every journal does the same, and what was promised holds at every step."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from millrace.delivery.adapters.memory.targets import MemoryTargets
from millrace.delivery.application.dispatch import Dispatch
from millrace.delivery.application.retry_delivery import Retry
from millrace.delivery.domain.events import captured
from millrace.delivery.domain.families import Families, Family
from millrace.delivery.domain.outcomes import Answer, Response, Verdict, held, judge, unreached
from millrace.delivery.domain.retry import Pace, Schedule
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.states import DELIVERED, Outcome, Status
from millrace.delivery.domain.targets import Target
from millrace_client.journal.capture import Capture
from millrace_client.journal.collect import Gc
from millrace_client.journal.memory.journal import MemoryJournal
from millrace_client.journal.memory.ledger import MemoryLedger
from tests.support.worlds import Clock, Scripted, World, event, in_memory, on_sqlite, results

SEEDS = int(os.environ.get("MILLRACE_HISTORIES", "25"))
STEPS = 60
TARGETS = [Target("all", "stub"), Target("orders", "stub", prefixes=frozenset({"order."}))]
KINDS = ["note", "order.paid", "here.note"]
PACE = Pace(1000, 60_000, 6)


@dataclass
class Moody:
    """A receiver whose answers depend on a seed and on what it is asked; it checks what it is sent."""

    seed: str
    world: World
    target: Target
    most_events: int
    most_bytes: int = 2_000
    sent: list[list[str]] = field(default_factory=list)

    def gate(self) -> None:
        return None

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        ids = [pick.event_id for pick in picks]
        self.sent.append(ids)
        assert [pick.position for pick in picks] == sorted(pick.position for pick in picks)
        statuses = self.world.statuses(self.target)
        assert not [id_ for id_ in ids if statuses.get(id_) in {*DELIVERED, Status.TERMINAL_FAILED}]
        if any(status == "transient" for status in statuses.values()):
            assert all(id_ in statuses for id_ in ids), "nothing new while something is transient"
        dice = random.Random(f"{self.seed}{ids}")
        mood = dice.choice(["well", "well", "well", "mixed", "mixed", "500", "413", "400", "named", "away", "silent"])
        if mood == "well":
            return results(**dict.fromkeys(ids, "success"))
        if mood == "mixed":
            words = ["success", "duplicate", "pending", "rejected", "transient"]
            return Answer(Verdict.RESULTS, {id_: Outcome(Status(dice.choice(words))) for id_ in ids})
        if mood == "named":
            return judge(Response(400, b'{"errors":[{"event_id":"%s"}]}' % dice.choice(ids).encode()), ids, 0)
        if mood == "away":
            return unreached("no connection")
        return held("no answer") if mood == "silent" else judge(Response(int(mood)), ids, 0)


def play(world: World, seed: int) -> list[object]:
    """One history; what it returns is all that anyone could see of it."""
    dice = random.Random(seed)
    world.schedule = Schedule(PACE, PACE, PACE)
    world.families = Families({"here.": Family.LOCAL_ONLY})
    for target in TARGETS:
        world.know(target)
    seen: list[object] = []
    for step in range(STEPS):
        action = dice.choice(["capture", "capture", "drain", "drain", "drain", "wait", "retry", "gc"])
        if action == "capture":
            key = dice.choice([None, None, "k1", "k2"])
            world.capture(f"e{step}", kind=dice.choice(KINDS), key=key, pad="x" * dice.randrange(200))
        elif action == "drain":
            target = dice.choice(TARGETS)
            receiver = Moody(f"{seed}-{step}", world, target, dice.choice([1, 3, 1000]))
            drained = world.drain(receiver, target)
            seen += [receiver.sent, drained]
        elif action == "wait":
            world.clock.ahead(dice.choice([1, 500, 5_000, 100_000]))
        elif action == "retry":
            seen.append(Retry(world.deliveries, world.journal, world.clock).all_terminal(dice.choice(TARGETS).id))
        else:
            seen.append(Gc(world.payloads, world.clock)())
        seen.append([world.deliveries.find(target.id, None, limit=1000) for target in TARGETS])
    return seen


@pytest.mark.parametrize("seed", range(SEEDS))
def test_both_journals_tell_the_same_history_and_in_the_end_everything_arrives(seed: int, tmp_path: Path) -> None:
    worlds = [in_memory(), on_sqlite(tmp_path / "journal.db")]
    assert play(worlds[0], seed) == play(worlds[1], seed)
    for world in worlds:
        wanted = {one.event_id for one in world.payloads.retained() if not one.superseded}
        for target in TARGETS:
            Retry(world.deliveries, world.journal, world.clock).all_terminal(target.id)
            world.clock.ahead(10**9)
            for _ in range(2):
                world.drain(Scripted(), target)
            statuses = {one.event_id: one.delivery.status for one in world.deliveries.find(target.id, None, limit=1000)}
            assert set(statuses.values()) <= DELIVERED
            kinds = {one.event_id: one.event_type for one in world.payloads.retained()}
            missing = {
                id_ for id_ in wanted - statuses.keys() if target.wants(kinds[id_], world.families.of(kinds[id_]))
            }
            assert missing == set()


def test_a_ledger_that_is_held_holds_no_other_ledger_of_the_target() -> None:
    """D6: order is per (target, ledger). The hub has many ledgers per target."""
    clock, journals = Clock(), {"one": MemoryJournal(), "two": MemoryJournal()}
    for name, journal in journals.items():
        Capture(journal, Families(), clock)([captured(event(f"{name}-{number}")) for number in range(3)])
    ledger = MemoryLedger(journals)
    dispatch = Dispatch(ledger, MemoryTargets(), clock, lambda: 0.0)
    receiver = Scripted([results(**{"one-0": "transient", "one-1": "success", "one-2": "success"})])
    assert dispatch(TARGETS[0], receiver).complete
    Capture(journals["one"], Families(), clock)([captured(event("one-3"))])
    Capture(journals["two"], Families(), clock)([captured(event("two-3"))])
    dispatch(TARGETS[0], receiver)
    assert receiver.offered == [["one-0", "one-1", "one-2"], ["two-0", "two-1", "two-2"], ["two-3"]]
    clock.ahead(10**6)
    dispatch(TARGETS[0], receiver)
    assert receiver.offered[3:] == [["one-0"], ["one-3"]]
    assert [(one.first, one.last) for one in ledger.ranges["all", "two"]] == [(1, 4)], "a delivered run is one row"


def test_a_run_that_was_delivered_together_is_one_row() -> None:
    """D4."""
    clock, journal = Clock(), MemoryJournal()
    Capture(journal, Families(), clock)([captured(event(f"e{number}")) for number in range(5000)])
    ledger = MemoryLedger({"one": journal})
    Dispatch(ledger, MemoryTargets(), clock, lambda: 0.0)(TARGETS[0], Scripted())
    assert [(one.first, one.last) for one in ledger.ranges["all", "one"]] == [(1, 5000)]
