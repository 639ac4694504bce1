"""One bad item of a batch never stops its neighbours, and its failure is told: a poison planted in every worker."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from millrace.delivery.adapters.memory.drains import MemoryDrains
from millrace.delivery.adapters.memory.targets import MemoryAgenda, MemoryDirectory, MemoryPositions, MemoryWakes
from millrace.delivery.adapters.wakes import SqsWakes, body_of, wake_of
from millrace.delivery.application.expect_drain import ExpectDrain
from millrace.delivery.application.lag import Lag, SweepTargets
from millrace.delivery.application.wake_targets import RemindTargets, WakeTargets
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.domain.sources import Source
from millrace.delivery.ports.targets import Kept, Wake
from millrace.lake.application.archive_events import lane_of
from millrace.ledger.adapters.doorbell import SqsDoorbell, rung_for
from millrace.ledger.adapters.memory import MemoryDoorbell, MemoryLog, MemoryState, in_turn
from millrace.ledger.adapters.memory_rounds import MemoryRounds
from millrace.ledger.application.failures import Failures
from millrace.ledger.application.sweep import Sweep, Watch
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Origin, Page, Record
from millrace.ledger.ports import Run
from millrace.runtime.records import ledgers_of
from tests.unit.lake import archiving

POISON, GOOD, OTHER = "sync#t#poison\uffff", "sync#t#good", "sync#u#other"


class Poison(Exception):
    """What nobody foresaw."""


@dataclass(slots=True)
class PoisonedLog(MemoryLog):
    """Of one ledger, nothing can be read."""

    poison: str = POISON

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        if ledger.name == self.poison:
            raise Poison(ledger.name)
        return MemoryLog.read(self, ledger, after, limit, through)

    def holding(self, ledger: Ledger, position: int) -> Page | None:
        if ledger.name == self.poison:
            raise Poison(ledger.name)
        return MemoryLog.holding(self, ledger, position)


def grown(log: MemoryLog, state: MemoryState, *names: str) -> None:
    for name in names:
        ledger = Ledger(name, name)
        state.register(ledger)
        log.append(ledger, Page(1, (Record("e", b"", b"{}"),), 0, Origin("C"), name.encode()))


def test_a_sweep_rings_for_every_other_ledger() -> None:
    log, state, bell = PoisonedLog(), MemoryState(), MemoryDoorbell()
    grown(log, state, POISON, GOOD, OTHER)
    failures = Failures()
    sweep = Sweep(log, state, MemoryRounds(state), [Watch("index", bell)], in_turn, lambda: 1, lambda: True)
    assert sweep(failures).rings == 2
    assert {ledger.name for ledger in bell.rung} == {GOOD, OTHER}
    assert [(failure.step, failure.subject) for failure in failures.found] == [("sweep", POISON)]
    with pytest.raises(Poison):
        failures.raise_first()


class BrokenBell(MemoryDoorbell):
    def ring(self, ledgers: Any) -> None:
        raise Poison


def test_a_doorbell_that_breaks_keeps_no_other_consumer_waiting() -> None:
    log, state, bell = MemoryLog(), MemoryState(), MemoryDoorbell()
    grown(log, state, GOOD)
    failures = Failures()
    watches = [Watch("index", BrokenBell()), Watch("archive", bell)]
    Sweep(log, state, MemoryRounds(state), watches, in_turn, lambda: 1, lambda: True)(failures)
    assert [ledger.name for ledger in bell.rung] == [GOOD]
    assert [failure.subject for failure in failures.found] == ["index"]


@dataclass(slots=True)
class PoisonedDirectory(MemoryDirectory):
    """Of tenant t, the targets cannot be read."""

    def of(self, tenant: str) -> Sequence[Kept]:
        if tenant == "t":
            raise Poison(tenant)
        return MemoryDirectory.of(self, tenant)


def put(directory: MemoryDirectory, tenant: str) -> None:
    target = HubTarget(tenant, "a", "stub", "", False, (Source("sync", "*"),), frozenset(), False, False, 0)
    assert directory.put(target, None)


def test_targets_of_every_other_tenant_are_woken_when_ledgers_grow() -> None:
    directory, wakes = PoisonedDirectory(), MemoryWakes()
    put(directory, "t")
    put(directory, "u")
    wake = WakeTargets(directory, ExpectDrain(MemoryDrains(), MemoryAgenda(), lambda: 1), wakes, in_turn)
    with pytest.raises(Poison):
        wake([GOOD, OTHER])
    assert wakes.sent == [Wake("u", "a", (OTHER,))]


def test_a_reminder_reaches_every_other_tenant_and_target() -> None:
    directory, wakes, agenda = PoisonedDirectory(), MemoryWakes(), PoisonedAgenda()
    put(directory, "t")
    put(directory, "u")
    put(directory, "v")
    for tenant in "uv":
        agenda.note(directory.of(tenant)[0].target.target(), [GOOD])
    failures = Failures()
    assert RemindTargets(directory, agenda, MemoryDrains(), wakes, lambda: 1, lambda: True)(failures) == 1
    assert wakes.sent == [Wake("v", "a")]
    assert [failure.subject for failure in failures.found] == ["t", "u#a"]


class PoisonedAgenda(MemoryAgenda):
    def due(self, target: Any, now_ms: int, limit: int) -> Sequence[str]:
        if target.id == "u#a":
            raise Poison
        return MemoryAgenda.due(self, target, now_ms, limit)


def test_a_sweep_of_targets_reaches_every_other_tenant() -> None:
    directory, wakes = PoisonedDirectory(), MemoryWakes()
    put(directory, "t")
    put(directory, "u")
    log, state = MemoryLog(), MemoryState()
    grown(log, state, GOOD, OTHER)
    lag = Lag(log, state, MemoryPositions(), in_turn, lambda: 10**6)
    failures = Failures()
    expect = ExpectDrain(MemoryDrains(), MemoryAgenda(), lambda: 10**6)
    look = SweepTargets(lag, directory, expect, wakes, 0, lambda: 10**6)(failures)
    assert look(list(state.ledgers())) == 1
    assert wakes.sent == [Wake("u", "a", (OTHER,))]
    assert [failure.subject for failure in failures.found] == ["t"]


def test_the_neighbours_of_a_ledger_that_cannot_be_archived_are_archived() -> None:
    """Of the same lane too, where they would share its object."""
    poison = "sync#t#poison"
    lane = [name for name in (f"sync#t#p{n}" for n in range(100)) if lane_of(name) == lane_of(poison)][:3]
    log = PoisonedLog(poison="")
    hub = archiving.Hub(log=log)
    for name in (*lane, poison):
        hub.commit(name, 2)
    log.poison = poison
    with pytest.raises(Poison):
        hub.archiver()(hub.ledgers())
    archived = {hub.state.marks(Ledger.to_read(name)).cursors.get("archive", 0) for name in lane}
    assert archived == {2}
    assert hub.state.marks(Ledger.to_read(poison)).cursors.get("archive", 0) == 0


@dataclass
class PickyQueue:
    """Takes what SQS takes: the characters of XML 1.0, no others."""

    sent: list[str] = field(default_factory=list)
    fine: ClassVar[Any] = staticmethod(lambda c: c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd")

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, Any]:  # noqa: N803
        for entry in Entries:
            assert all(map(self.fine, entry["MessageBody"])), "InvalidMessageContents"
            self.sent.append(entry["MessageBody"])
        return {}


@pytest.mark.parametrize("name", [POISON, "sync#t#a\x00b", "realtime#t#\ud83d", 'sync#t#"quoted"', GOOD])
def test_whatever_a_ledger_is_called_its_ring_and_its_wake_up_pass_the_queue(name: str) -> None:
    """Names that were stored before the rule for names stay readable."""
    queue: Any = PickyQueue()
    SqsDoorbell(queue, "url").ring([Ledger.to_read(name), Ledger.to_read(GOOD)])
    assert sorted(rung_for(body).name for body in queue.sent) == sorted({name, GOOD})
    queue.sent.clear()
    wake = Wake("t\uffff", "target\x00", (name,))
    SqsWakes(queue, "url").send([wake])
    assert [wake_of(body) for body in queue.sent] == [wake]


def test_a_ring_that_was_sent_before_names_were_encoded_is_understood() -> None:
    records = [{"body": GOOD}, {"body": json.dumps(POISON)}, {"body": json.dumps(GOOD)}]
    assert [ledger.name for ledger in ledgers_of({"Records": records})] == sorted([GOOD, POISON])
    assert wake_of(body_of(Wake("t", "a", (GOOD,)))) == Wake("t", "a", (GOOD,))


def test_a_ring_that_cannot_be_read_stops_no_other_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    records = [{"body": '"torn', "messageId": "m-1"}, {"dynamodb": {"Keys": {}}}, {"body": json.dumps(GOOD)}]
    assert [ledger.name for ledger in ledgers_of({"Records": records})] == [GOOD]
    logged = [vars(record) for record in caplog.records if record.msg == "unreadable_record"]
    assert [line["message_id"] for line in logged] == ["m-1", ""]
