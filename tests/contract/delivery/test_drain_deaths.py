"""A drain may die at any call to storage, to its queue or to its target: another goes on in seconds (D6).

The queue, the clock and the deaths are modelled; everything else is what runs on the hub.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from millrace.delivery.adapters.dynamodb.agenda import DynamoAgenda
from millrace.delivery.adapters.dynamodb.directory import DynamoDirectory, DynamoTargetStates
from millrace.delivery.adapters.dynamodb.drains import DynamoDrains, DynamoLine
from millrace.delivery.adapters.hub_receivers import Guarded
from millrace.delivery.application.deliver import Deliver, Delivered
from millrace.delivery.application.take_turns import TakeTurns
from millrace.delivery.domain.drains import BEAT_MS, HIDDEN_MS, LEASE_MS, DrainLease, Shares
from millrace.delivery.domain.hub_targets import check_target
from millrace.delivery.domain.outcomes import Answer, Verdict
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.states import Outcome, Status
from millrace.delivery.ports.targets import Wake
from millrace.delivery.receivers.registry import RECEIVERS
from tests.contract.delivery.test_hub_crashes import Died, Mortal
from tests.support.hub_world import JOURNAL, TENANT, HubWorld, on_table
from tests.support.table import Table
from tests.support.worlds import Scripted

VISIBILITY_MS = 60_000
RUNG = Wake(TENANT, "a", (JOURNAL.name,), slow=True)


@dataclass
class Message:
    wake: Wake
    visible_ms: int


@dataclass
class Queue:
    """As SQS has it: a message comes again unless it is deleted, or kept hidden, in time."""

    world: Hub
    messages: list[Message] = field(default_factory=list)

    def send(self, wakes: Sequence[Wake]) -> None:
        self.world.call()
        self.messages += [Message(wake, self.world.clock()) for wake in wakes]

    def receive(self) -> Message | None:
        found = [one for one in self.messages if one.visible_ms <= self.world.clock()]
        return found[0] if found else None


@dataclass
class Target(Scripted):
    """Counts what it gets, takes its time, and refuses large batches without a word."""

    hub: Any = None
    takes_ms: int = 100
    splits_above: int = 1000
    meanwhile: Callable[[], None] = lambda: None
    got: Counter[str] = field(default_factory=Counter)

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        for _ in range(self.takes_ms // BEAT_MS):
            self.hub.clock.ahead(BEAT_MS)
            self.hub.beat()
        self.hub.clock.ahead(self.takes_ms % BEAT_MS)
        self.meanwhile()
        if len(picks) > self.splits_above:
            self.hub.call()
            return Answer(Verdict.SPLIT, outcome=Outcome(Status.REJECTED))
        self.offered.append([pick.event_id for pick in picks])
        self.got.update(pick.event_id for pick in picks)
        self.hub.call()
        return Answer(Verdict.RESULTS, {pick.event_id: Outcome(Status.SUCCESS) for pick in picks})


@dataclass
class Hub:
    """`left`: how many calls to anything the running process lives for; -1: it lives on."""

    chance: random.Random
    table: Table = field(default_factory=Table)
    left: int = -1
    beats: list[Callable[[], None]] = field(default_factory=list)
    numbers: int = 0
    sent_before: int = 0

    def __post_init__(self) -> None:
        self.world: HubWorld = on_table(self.table, "delivery")
        self.clock = self.world.clock
        self.mortal = Mortal(self.table, self.chance)
        client: Any = self.mortal
        self.queue = Queue(self)
        self.target = Target(hub=self)
        directory = DynamoDirectory(client, "delivery")
        body = {"type": "stub", "sources": [{"contract": "delivery", "scope": "team"}]}
        made = check_target(TENANT, "a", body, None, 5, kinds=RECEIVERS, loopback=False)
        assert directory.put(made, None)
        runs = replace(self.world.hub.runs, client=client)
        self.world.hub = replace(
            self.world.hub, runs=runs, positions=replace(self.world.hub.positions, runs=runs), clock=self.clock
        )
        self.drains = DynamoDrains(client, "delivery")
        unused: Any = None
        self.deliver = Deliver(
            directory=directory,
            states=DynamoTargetStates(directory),
            agenda=DynamoAgenda(runs),
            lag=unused,
            drains=self.drains,
            turns=TakeTurns(self.drains, DynamoLine(client, "delivery"), self.queue, Shares(), self.clock),
            paces=DynamoTargetStates(directory),
            wakes=self.queue,
            ledger=self._ledger,
            receiver=lambda _, may_send: Guarded(self.target, may_send),
            beating=self._beating,
            clock=self.clock,
            random=lambda: 0.5,
            new_id=self._new_id,
            has_time=lambda: True,
            schedule=Schedule(),
        )

    def _new_id(self) -> str:
        self.numbers += 1
        return str(self.numbers)

    def _ledger(self, rung: tuple[str, ...], may_go_on: Any, hears: Any) -> Any:
        return replace(self.world.again(*rung), may_go_on=may_go_on, hears=hears)

    @contextmanager
    def _beating(self, beat: Callable[[], None]) -> Iterator[None]:
        self.beats.append(beat)
        try:
            yield
        finally:
            self.beats = [one for one in self.beats if one is not beat]

    def beat(self) -> None:
        for beat in self.beats[-1:]:
            beat()

    def call(self) -> None:
        """One call to something that is not storage; it counts like those."""
        self.mortal.left -= 1
        if self.mortal.left == 0:
            raise Died

    def work(self) -> bool:
        """Receive one message and work on it; False if none is there."""
        message = self.queue.receive()
        if message is None:
            return False
        message.visible_ms = self.clock() + VISIBILITY_MS
        self.sent_before = len(self.target.offered)

        def keep() -> None:
            self.call()
            message.visible_ms = self.clock() + HIDDEN_MS

        self.deliver(message.wake, keep)
        self.queue.messages.remove(message)
        return True

    def settle(self) -> None:
        while self.work():
            pass

    @property
    def delivered(self) -> set[str]:
        found = self.world.deliveries.find("a", None, limit=1000)
        return {one.event_id for one in found if one.delivery.delivered}


@pytest.mark.parametrize("tens", range(20))
def test_a_death_at_any_call_costs_seconds_and_at_most_the_one_request_in_doubt(tens: int) -> None:
    """D4, D6: within the lease and one beat of its death, another drain has sent the rest."""
    for seed in range(tens * 10, tens * 10 + 10):
        chance = random.Random(seed)
        hub = Hub(chance)
        hub.target.most_events = chance.choice([1, 4, 100])
        hub.target.splits_above = chance.choice([1, 3, 1000])
        hub.target.takes_ms = chance.choice([10, 4_000])
        ids = [f"e{number}" for number in range(8)]
        hub.world.capture(*ids)
        hub.queue.send([RUNG])
        hub.mortal.live_for(chance.randrange(1, 60))
        try:
            hub.settle()
        except Died:
            hub.beats.clear()
            kept = hub.queue.messages[0].visible_ms - hub.clock() <= HIDDEN_MS
            assert kept or hub.sent_before == len(hub.target.offered), "kept before it sends"
            hub.mortal.left = -1
            hub.clock.ahead(HIDDEN_MS if kept else VISIBILITY_MS)
        hub.mortal.left = -1
        hub.settle()
        assert hub.delivered == set(ids), seed
        assert max(hub.target.got.values()) <= 2, seed
        doubled = {id_ for id_, times in hub.target.got.items() if times > 1}
        assert any(doubled <= set(batch) for batch in hub.target.offered), f"seed {seed}: of one request alone"
        assert hub.drains.of(TENANT) == []
        assert hub.queue.messages == []


def test_a_wake_up_that_meets_a_drain_leaves_its_wish_and_sends_nothing() -> None:
    """D6: one drain of a target at a time, however long a request takes."""
    hub = Hub(random.Random(0))
    hub.target.takes_ms = 14_000
    hub.world.capture("e1")
    others: list[Delivered] = []

    def meanwhile() -> None:
        hub.target.meanwhile = lambda: None
        others.append(hub.deliver(RUNG))

    hub.target.meanwhile = meanwhile
    hub.queue.send([RUNG])
    hub.settle()
    assert others == [Delivered()]
    assert hub.target.offered == [["e1"]]


def test_a_drain_that_is_about_to_go_looks_again_for_what_it_was_asked() -> None:
    """D6: a wish that comes after its last look, and before its lease is given back, is not lost."""
    hub = Hub(random.Random(0))
    hub.world.capture("e1")

    class LastMoment(DynamoDrains):
        def end(self, drain: DrainLease) -> bool:
            if hub.world.committed.head == 1:
                hub.world.capture("e2")
                assert hub.deliver(RUNG) == Delivered()
            return super().end(drain)

    client: Any = hub.mortal
    hub.deliver = replace(hub.deliver, drains=LastMoment(client, "delivery"))
    hub.queue.send([RUNG])
    assert hub.work()
    assert hub.target.offered == [["e1"], ["e2"]]
    assert not hub.work(), "nothing was sent through the queue for it"


def test_a_drain_that_was_taken_for_dead_sends_nothing_more() -> None:
    """D6: it is asked before each request whether the lease is still its own."""
    hub = Hub(random.Random(0))
    hub.target.most_events = 1
    hub.world.capture("e1", "e2", "e3")

    def stall() -> None:
        hub.target.meanwhile = lambda: None
        hub.clock.ahead(LEASE_MS)
        other = DrainLease(TENANT, "a", "another", hub.clock(), hub.clock() + LEASE_MS)
        assert hub.drains.take(other, hub.clock()).began

    hub.target.meanwhile = stall
    hub.queue.send([RUNG])
    assert hub.work()
    assert hub.target.offered == [["e1"]], "only the request it was in the middle of may be doubled"
    assert hub.delivered == {"e1"}, "what was answered is true all the same"
    assert [drain.holder for drain in hub.drains.of(TENANT)] == ["another"]
    assert [message.wake for message in hub.queue.messages] == [Wake(TENANT, "a", most_events=1, slow=True)]


def test_a_drain_whose_lease_ended_unnoticed_takes_it_again_before_it_sends() -> None:
    hub = Hub(random.Random(0))
    hub.target.most_events = 1
    hub.world.capture("e1", "e2")

    def stall() -> None:
        hub.target.meanwhile = lambda: None
        hub.clock.ahead(LEASE_MS)

    hub.target.meanwhile = stall
    hub.queue.send([RUNG])
    hub.settle()
    assert hub.target.offered == [["e1"], ["e2"]]


def test_a_long_drain_keeps_its_lease_and_gives_way_after_its_slice() -> None:
    """D6: it asks for its next turn itself."""
    hub = Hub(random.Random(0))
    hub.target.most_events, hub.target.takes_ms = 1, 4_000
    hub.world.capture(*(f"e{number}" for number in range(5)))
    hub.queue.send([RUNG])
    assert hub.work()
    assert len(hub.target.offered) == 3
    assert [message.wake for message in hub.queue.messages] == [Wake(TENANT, "a", slow=True)]
    assert hub.drains.of(TENANT) == []
    hub.settle()
    assert [batch[0] for batch in hub.target.offered] == [f"e{number}" for number in range(5)]


def test_a_batch_that_is_cut_for_longer_than_a_drain_lasts_is_gone_on_with_where_time_ran_out() -> None:
    """D8: however slowly a target says no, poison ends up alone."""
    hub = Hub(random.Random(0))
    hub.target.splits_above, hub.target.takes_ms = 1, 12_000
    hub.deliver = replace(hub.deliver, has_time=lambda: hub.clock() % 100_000 < 25_000)
    hub.world.capture(*(f"e{number}" for number in range(64)))
    hub.queue.send([RUNG])
    for _ in range(400):
        hub.clock.ahead(100_000 - hub.clock() % 100_000)
        if not hub.work():
            break
    assert len(hub.delivered) == 64
    assert max(hub.target.got.values()) == 1
