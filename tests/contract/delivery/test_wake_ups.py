"""A target that is served or has a wake-up on its way gets no other, and no wish is lost by that (D6).

Writers that wake a target and drains that serve it give way to each other at every call to storage, as a seed says.
The adapters and use cases are what runs on the hub; bugs that are planted in them have to show.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from millrace.delivery.adapters.dynamodb.directory import DynamoDirectory
from millrace.delivery.adapters.dynamodb.drains import DynamoDrains
from millrace.delivery.adapters.dynamodb.runs import Runs
from millrace.delivery.application.expect_drain import ExpectDrain
from millrace.delivery.application.wake_targets import RemindTargets, WakeTargets
from millrace.delivery.domain.drains import EXPECTED_MS, DrainLease
from millrace.delivery.ports.drains import Expected, LeaseTaken
from millrace.delivery.ports.targets import Wake
from millrace.ledger.adapters.memory import in_turn
from millrace.ledger.application.failures import Failures
from tests.contract.delivery.test_drain_deaths import VISIBILITY_MS, Hub
from tests.contract.delivery.test_hub_crashes import Died
from tests.simulation.scheduler import Scheduler
from tests.support.hub_world import JOURNAL, TENANT
from tests.support.table import Table

SEEDS = range(400)
WRITERS, WORKERS = 3, 2


class GivingWay(Table):
    """Anything may happen before and after each call."""

    scheduler: Scheduler | None = None

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or name in ("items", "scheduler"):
            return found

        def called(**arguments: Any) -> Any:
            if self.scheduler is not None:
                self.scheduler.pause()
            answer = found(**arguments)
            if self.scheduler is not None:
                self.scheduler.pause()
            return answer

        return called


@dataclass
class Race:
    """Writers and workers of one target. `die`: how likely a process is to end at a call."""

    seed: int
    die: float = 0.0
    events: int = 0
    """Of each writer; 0: a few."""
    calls: int = 0
    writing: int = WRITERS
    numbers: int = 0
    table: GivingWay = field(default_factory=GivingWay)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.events = self.events or self.rng.choice([1, 2, 4])
        self.longest_delay = self.rng.choice([30, 120])
        self.hub = Hub(self.rng, table=self.table)
        self.hub.target.takes_ms = 0
        self.hub.target.most_events = self.rng.choice([1, 100])
        self.hub.target.meanwhile = self._pause
        self.scheduler = Scheduler(self.rng, self.rng.choice([0.5, 0.9]), strides_ms=(0,))
        client: Any = self.hub.mortal
        self.drains: Any = DynamoDrains(client, "delivery")
        self.expect: Any = ExpectDrain(self.drains, self.hub.deliver.agenda, self.hub.clock)
        self.directory = DynamoDirectory(client, "delivery")

    def _pause(self) -> None:
        if self.table.scheduler is not None:
            self.scheduler.pause()

    def run(self) -> None:
        self.hub.deliver = replace(self.hub.deliver, drains=self.drains)
        self.table.scheduler = self.scheduler
        for _ in range(WRITERS):
            self.scheduler.spawn(self._guard(self._write), delay=self.rng.randrange(self.longest_delay))
        for _ in range(WORKERS):
            self.scheduler.spawn(self._work)
        self.scheduler.run()
        self.table.scheduler = None

    def _guard(self, actor: Callable[[], None]) -> Callable[[], None]:
        def guarded() -> None:
            try:
                actor()
            except Died:
                pass
            finally:
                self.writing -= 1

        return guarded

    def _write(self) -> None:
        wake: Any = WakeTargets(self.directory, self.expect, self.hub.queue, in_turn)
        for _ in range(self.events):
            self.numbers += 1
            self.hub.world.capture(f"e{self.numbers}")
            self.scheduler.pause()
            self._risk()
            wake([JOURNAL.name])

    def _work(self) -> None:
        """As Lambda does: one message after another, each hidden while it is worked on."""
        while self.writing or self.hub.queue.receive():
            message = self.hub.queue.receive()
            if message is None:
                self.scheduler.pause()
                continue
            message.visible_ms = self.hub.clock() + VISIBILITY_MS
            self.calls += 1
            try:
                self._risk()
                self.hub.deliver(message.wake, lambda: None)
                self._risk()
            except Died:
                continue
            self.hub.queue.messages.remove(message)

    def _risk(self) -> None:
        if self.rng.random() < self.die:
            raise Died

    @property
    def complete(self) -> bool:
        return self.hub.delivered == {f"e{number}" for number in range(1, self.numbers + 1)}


def lost(plant: Callable[[Race], None] = lambda _: None) -> int | None:
    """A seed after which an event is not delivered although nobody died: only a reminder would find it."""
    for seed in SEEDS:
        race = Race(seed)
        plant(race)
        race.run()
        if not race.complete:
            return seed
    return None


@pytest.mark.slow
def test_no_wish_is_lost_whoever_comes_first() -> None:
    """D6: without a reminder, a sweep or a time-out."""
    assert lost() is None


def test_a_target_that_is_served_costs_fewer_calls_of_deliver_than_it_has_wake_ups() -> None:
    """As many came while it was served as there are events. A first call passes it on to slow targets."""
    race = Race(3, events=100)
    race.run()
    assert race.hub.queue.messages == []
    assert race.complete
    assert race.calls < WRITERS * 100 / 2


@pytest.mark.slow
def test_what_a_death_leaves_is_found_by_the_reminder_of_the_next_minute() -> None:
    """D6: a wake-up that was announced and never sent holds nobody up for longer."""
    died = 0
    for seed in SEEDS:
        race = Race(seed, die=0.1)
        race.run()
        died += not race.complete
        race.hub.clock.ahead(60_000)
        deliver = race.hub.deliver
        remind = RemindTargets(
            race.directory, deliver.agenda, deliver.drains, race.hub.queue, race.hub.clock, lambda: True
        )
        if race.rng.random() < 0.5:  # the log's stream brings the records of a dead writer again
            WakeTargets(race.directory, race.expect, race.hub.queue, in_turn)([JOURNAL.name])
            remind(Failures())
        else:
            race.hub.clock.ahead(-60_000)
            WakeTargets(race.directory, race.expect, race.hub.queue, in_turn)([JOURNAL.name])
            race.hub.clock.ahead(60_000)
            remind(Failures())
        race.hub.settle()
        assert race.complete, seed
    assert died > len(SEEDS) / 10, "or nothing was proven"


def test_a_wish_that_is_not_noted_is_lost_and_found_out() -> None:
    """A planted bug: who finds a wake-up on its way says nothing."""

    def plant(race: Race) -> None:
        def expect(_: Any, wake: Wake) -> Wake | None:
            return wake if race.drains.expect(wake.tenant, wake.target_id, race.hub.clock()).mine else None

        race.expect = expect

    assert lost(plant) is not None


def test_a_note_after_the_look_is_lost_and_found_out() -> None:
    """A planted bug: the wish is noted, but nobody looks again whether the wake-up is still on its way."""

    def plant(race: Race) -> None:
        def expect(target: Any, wake: Wake) -> Wake | None:
            if race.drains.expect(wake.tenant, wake.target_id, race.hub.clock()).mine:
                return wake
            race.hub.deliver.agenda.note(target, wake.ledgers)
            return None

        race.expect = expect

    assert lost(plant) is not None


class Forgetful(DynamoDrains):
    """A planted bug: nobody is asked to look again."""

    def ask(self, drain: DrainLease) -> bool:
        return drain is not None


class Lasting(DynamoDrains):
    """A planted bug: whoever takes the lease leaves the announcement there when it goes."""

    def take(self, drain: DrainLease, now_ms: int) -> LeaseTaken:
        taken = super().take(drain, now_ms)
        if taken.began:
            ANNOUNCED.add(drain.target_id)
        return taken

    def expect(self, tenant: str, target_id: str, now_ms: int) -> Expected:
        expected = super().expect(tenant, target_id, now_ms)
        return Expected(mine=False) if target_id in ANNOUNCED and expected.mine else expected


ANNOUNCED: set[str] = set()


@pytest.mark.parametrize("drains", [Forgetful, Lasting])
def test_a_bug_of_the_announcements_is_found_out(drains: type[DynamoDrains]) -> None:
    def plant(race: Race) -> None:
        client: Any = race.hub.mortal
        ANNOUNCED.clear()
        race.drains = drains(client, "delivery")
        race.expect = ExpectDrain(race.drains, race.hub.deliver.agenda, race.hub.clock)

    assert lost(plant) is not None


def test_a_visit_that_was_noted_again_and_is_crossed_off_all_the_same_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A planted bug: a drain crosses off what was noted after it had looked."""

    def blindly(self: Runs, visit: Any) -> None:
        self._remove({"p": visit["p"], "s": visit["s"]})

    monkeypatch.setattr(Runs, "_cross_off", blindly)
    assert lost() is not None


def test_a_wake_up_that_never_comes_holds_others_up_for_seconds_only() -> None:
    race = Race(0)
    wake = WakeTargets(race.directory, race.expect, race.hub.queue, in_turn)
    race.hub.world.capture("e1")
    assert wake([JOURNAL.name]) == 1
    race.hub.queue.messages.clear()
    assert wake([JOURNAL.name]) == 0
    race.hub.clock.ahead(EXPECTED_MS)
    assert wake([JOURNAL.name]) == 1
    assert [message.wake.tenant for message in race.hub.queue.messages] == [TENANT]
