"""Fair shares: slow targets have slots of their own, tenants take turns, and the bound is counted (D6)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.delivery.adapters.hub_receivers import Guarded
from millrace.delivery.adapters.memory.drains import MemoryDrains, MemoryLine
from millrace.delivery.adapters.memory.targets import MemoryAgenda, MemoryDirectory
from millrace.delivery.application.deliver import Deliver
from millrace.delivery.application.take_turns import TakeTurns
from millrace.delivery.domain.drains import FORGOTTEN_MS, QUICK_MS, DrainLease, Shares, WaitingTarget, called, has_turn
from millrace.delivery.domain.events import captured
from millrace.delivery.domain.families import Family
from millrace.delivery.domain.hub_targets import check_target
from millrace.delivery.domain.outcomes import Answer
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.selection import Pick
from millrace.delivery.ports.targets import Wake
from millrace.delivery.receivers.registry import RECEIVERS
from millrace_client.journal.memory.journal import MemoryJournal
from tests.support.worlds import Clock, Scripted, event
from tests.unit.delivery.test_hub_targets import OneDrain

SHARES = Shares(quick=3, slow=2)


def drain(target_id: str, since_ms: int, *, slow: bool = False, until_ms: int = 10**9) -> DrainLease:
    return DrainLease("t", target_id, f"h-{target_id}", since_ms, until_ms, slow)


def test_a_drain_goes_on_while_its_tenant_has_room() -> None:
    running = [drain("a", 1), drain("b", 2)]
    assert has_turn(drain("c", 3), [*running, drain("c", 3)], [], SHARES, 10)
    full = [*running, drain("c", 3), drain("d", 4)]
    assert not has_turn(drain("d", 4), full, [], SHARES, 10)
    assert has_turn(drain("d", 4), [drain("a", 1, until_ms=5), *full[1:]], [], SHARES, 10), "a dead one takes no room"
    assert has_turn(drain("d", 4, slow=True), full, [], SHARES, 10), "nor does a quick one among slow ones"


def test_who_came_later_leaves_room_for_those_in_line_unless_they_are_forgotten() -> None:
    line = [WaitingTarget("t", name, since) for since, name in enumerate("abc", start=1)]
    assert not has_turn(drain("d", 9), [drain("d", 9)], line, SHARES, 10)
    assert has_turn(drain("a", 9), [drain("a", 9)], line, SHARES, 10), "its own place counts"
    assert has_turn(drain("d", 9), [drain("d", 9)], line, SHARES, FORGOTTEN_MS + 5)


@given(st.lists(st.sampled_from("abcdefgh"), unique=True), st.lists(st.sampled_from("abcdefgh"), unique=True))
def test_whoever_is_called_finds_its_turn(running: list[str], waiting: list[str]) -> None:
    """Else a target could be called and stand in line again for ever."""
    drains = [drain(name, 50 + number) for number, name in enumerate(running)]
    line = [WaitingTarget("t", name, number) for number, name in enumerate(waiting)]
    for one in called(drains, line, SHARES, 100, slow=False):
        mine = drain(one.target_id, 100)
        assert has_turn(mine, [*drains, mine], line, SHARES, 100)
    room = max(0, SHARES.quick - len(running))
    assert len(called(drains, line, SHARES, 100, slow=False)) == min(room, len(set(waiting) - set(running)))


@dataclass
class Target(Scripted):
    """Answers after a while, in which everything else on the hub goes on."""

    hub: Any = None
    name: str = ""
    takes_ms: int = 100

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        self.hub.busy += [self.name]
        self.hub.most_busy = max(self.hub.most_busy, len(self.hub.busy))
        self.hub.requests.append(self.name)
        self.hub.meanwhile()
        self.hub.clock.ahead(self.takes_ms)
        self.hub.busy.remove(self.name)
        return super().deliver(picks)


@dataclass
class Hub:
    """A hub in virtual time. `quick` and `slow` are its queues, with as many slots as are asked for: a request that
    takes long is a nested call, in which the next message may be worked on while there is a slot."""

    slots: int = 4
    shares: Shares = SHARES
    clock: Clock = field(default_factory=Clock)
    directory: MemoryDirectory = field(default_factory=MemoryDirectory)
    drains: MemoryDrains = field(default_factory=MemoryDrains)
    line: MemoryLine = field(default_factory=MemoryLine)
    agenda: MemoryAgenda = field(default_factory=MemoryAgenda)
    journals: dict[str, OneDrain] = field(default_factory=dict)
    receivers: dict[str, Target] = field(default_factory=dict)
    queues: dict[bool, list[Wake]] = field(default_factory=lambda: {False: [], True: []})
    running: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    busy: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    most_busy: int = 0
    numbers: int = 0

    def add(self, tenant: str, name: str, *, quick: bool = True, takes_ms: int = 100, events: int = 1) -> Wake:
        given_target = {"type": "stub", "sources": [{"contract": "delivery", "scope": "*"}]}
        made = check_target(tenant, name, given_target, None, 5, kinds=RECEIVERS, loopback=False)
        self.directory.put(made, None)
        self.directory.states.pace(made.key, quick=quick)
        ledger = f"delivery#{tenant}#{name}"
        journal = MemoryJournal()
        journal.capture([(captured(event(f"{name}-{n}")), Family.TEAMSPACE) for n in range(events)], 0)
        self.journals[made.key] = OneDrain({ledger: journal}, rung=(ledger,))
        self.receivers[made.key] = Target(hub=self, name=name, takes_ms=takes_ms, most_events=1)
        return Wake(tenant, name, (ledger,))

    def send(self, wakes: Sequence[Wake]) -> None:
        for wake in wakes:
            self.queues[wake.slow].append(wake)

    def meanwhile(self) -> None:
        for slow in (False, True):
            while self.queues[slow] and self.running[slow] < self.slots:
                self.work(slow=slow)

    def work(self, *, slow: bool) -> None:
        wake = self.queues[slow].pop(0)
        self.running[slow] += 1
        self.deliver(wake)
        self.running[slow] -= 1

    def run(self) -> None:
        while any(self.queues.values()):
            self.meanwhile()

    def deliver(self, wake: Wake) -> None:
        key = f"{wake.tenant}#{wake.target_id}"
        unused: Any = None
        Deliver(
            directory=self.directory,
            states=self.directory.states,
            agenda=self.agenda,
            lag=unused,
            drains=self.drains,
            turns=TakeTurns(self.drains, self.line, self, self.shares, self.clock),
            paces=self.directory.states,
            wakes=self,
            ledger=lambda _rung, _go_on, _hears: self.journals[key],
            receiver=lambda _, may_send: Guarded(self.receivers[key], may_send),
            beating=lambda _: nullcontext(),
            clock=self.clock,
            random=lambda: 0.0,
            new_id=self._new_id,
            has_time=lambda: True,
            schedule=Schedule(),
        )(wake)

    def _new_id(self) -> str:
        self.numbers += 1
        return str(self.numbers)


@pytest.mark.parametrize("slow_targets", [12, 120])
def test_a_quick_target_is_served_before_any_number_of_slow_ones_has_been_asked(slow_targets: int) -> None:
    """D6, the bound: of the slots of quick targets, slow ones take none."""
    hub = Hub(slots=1)
    hub.running[True] = hub.slots  # every slot of slow targets is taken
    hub.send([hub.add("loud", f"s{number}", quick=False, takes_ms=15_000) for number in range(slow_targets)])
    hub.send([hub.add("calm", "b")])
    began_ms = hub.clock()
    _run_quick(hub)
    assert hub.requests == ["b"]
    assert hub.clock() - began_ms <= QUICK_MS


def _run_quick(hub: Hub) -> None:
    while hub.queues[False]:
        hub.work(slow=False)


def test_of_one_tenant_no_more_than_its_share_is_served_at_once_and_all_are_served() -> None:
    """D6, the bound: a tenant takes its share of the slots and no more, whatever waits for it."""
    hub = Hub(slots=100)
    hub.send([hub.add("loud", f"q{number}", events=2) for number in range(12)])
    hub.run()
    assert hub.most_busy == SHARES.quick
    assert all(sent.sent == [f"{sent.name}-0", f"{sent.name}-1"] for sent in hub.receivers.values())
    assert hub.line.line == {}
    assert hub.drains.held == {}


def test_another_tenant_has_a_slot_at_once_while_one_takes_its_whole_share() -> None:
    """D6, the bound: the other's first request goes out while the first requests of the loud one are on their way."""
    hub = Hub(slots=4)
    hub.send([hub.add("loud", f"q{number}", takes_ms=QUICK_MS) for number in range(12)])
    hub.send([hub.add("calm", "b")])
    hub.run()
    assert hub.requests.index("b") == SHARES.quick


def test_a_target_that_turns_slow_gives_its_slot_back_after_that_request() -> None:
    """D6"""
    hub = Hub(slots=1)
    wake = hub.add("loud", "a", takes_ms=QUICK_MS + 1, events=3)
    hub.send([wake])
    hub.work(slow=False)
    assert hub.requests == ["a"]
    _run_quick(hub)
    assert hub.requests == ["a"], "from then on it uses the slots of slow ones"
    hub.receivers["loud#a"].takes_ms = 10
    hub.run()
    assert hub.requests == ["a", "a", "a"]
    kept = hub.directory.get("loud", "a")
    assert kept is not None
    assert kept.state.quick, "and it is quick again once it answers soon"


def test_wake_ups_of_a_slow_target_that_is_served_or_stands_in_line_are_not_passed_on() -> None:
    """However many come, they cost a note each."""
    hub = Hub(shares=replace(SHARES, slow=1))
    first, second = (hub.add("loud", name, quick=False) for name in ("a", "b"))

    hub.drains.take(DrainLease("loud", "a", "h", hub.clock(), hub.clock() + 9_000, slow=True), hub.clock())
    hub.deliver(replace(second, slow=True))
    assert [one.target_id for one in hub.line.waiting("loud")] == ["b"]
    for wake in (first, second) * 5:
        hub.deliver(wake)
    assert hub.queues == {False: [], True: []}
    assert hub.requests == []


def test_a_target_that_has_waited_long_is_called_first_when_there_is_room() -> None:
    """D6, the bound: the reminder sees it every minute. Were it forgotten, whoever waited longest was called last."""
    hub = Hub(shares=replace(SHARES, slow=1))
    wakes = {name: hub.add("loud", name, quick=False) for name in ("a", "b", "c")}
    serving = DrainLease("loud", "a", "h", hub.clock(), hub.clock() + 10**9, slow=True)
    hub.drains.take(serving, hub.clock())
    for name in ("b", "c"):
        hub.deliver(replace(wakes[name], slow=True))
        hub.clock.ahead(1)
    for _ in range(5):
        hub.clock.ahead(60_000)
        for name in ("b", "c"):
            hub.deliver(Wake("loud", name))  # the reminder's
    hub.clock.ahead(10_000)
    hub.drains.end(serving)
    TakeTurns(hub.drains, hub.line, hub, hub.shares, hub.clock).call("loud", slow=True)
    hub.run()
    assert hub.requests == ["b", "c"]


def test_a_target_that_nobody_has_seen_for_long_holds_up_no_other() -> None:
    hub = Hub(shares=replace(SHARES, slow=1))
    hub.line.wait(WaitingTarget("loud", "gone", hub.clock(), slow=True))
    hub.clock.ahead(FORGOTTEN_MS)
    hub.deliver(replace(hub.add("loud", "b", quick=False), slow=True))
    assert hub.requests == ["b"]
