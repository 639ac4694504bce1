"""A drain may die at any call to storage, before or after its effect, and nothing is lost, forgotten or miscounted."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from millrace.delivery.adapters.dynamodb.agenda import DynamoAgenda
from millrace.delivery.application.dispatch import Dispatch
from millrace.delivery.application.retry_delivery import Retry
from millrace.delivery.domain.outcomes import Answer, Verdict, held, unreached
from millrace.delivery.domain.retry import Pace, Schedule
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.states import Outcome, Status
from millrace.ledger.domain.errors import MillraceError
from tests.support.hub_world import JOURNAL, A, HubWorld, on_table
from tests.support.table import Table
from tests.support.worlds import Scripted

pytestmark = pytest.mark.slow
SEEDS = int(os.environ.get("MILLRACE_CRASH_SEEDS", "200"))
EVENTS = 14
DAY = 86_400_000
WORDS = ["success"] * 4 + ["duplicate", "pending", "rejected", "transient", "terminal_failed"]


class Died(Exception):
    """The process is gone."""


class Mortal:
    """A client whose process dies at some call, before its effect or after."""

    def __init__(self, client: Any, chance: random.Random) -> None:
        self.client, self.chance, self.left, self.after = client, chance, -1, False

    def live_for(self, calls: int) -> None:
        self.left, self.after = calls, self.chance.random() < 0.5

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.client, name)

        def mortal(**arguments: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.after:
                raise Died
            answer = call(**arguments)
            if self.left == 0:
                raise Died
            return answer

        return mortal


class Moody(Scripted):
    """Answers in every way, by chance."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(most_events=chance.choice([1, 3, 100]))
        self.chance, self.accepted, self.refused = chance, set[str](), False

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        self.offered.append([pick.event_id for pick in picks])
        if self.refused and self.chance.random() < 0.2:
            return self.chance.choice([held("answered 500"), unreached("no connection")])
        said = {
            pick.event_id: Outcome(Status(self.chance.choice(WORDS) if self.refused else "success")) for pick in picks
        }
        self.accepted |= {id_ for id_, outcome in said.items() if outcome.status in (Status.SUCCESS, Status.DUPLICATE)}
        return Answer(Verdict.RESULTS, said)


def mortal(world: HubWorld, chance: random.Random) -> Mortal:
    client = Mortal(world.hub.runs.client, chance)
    runs = replace(world.hub.runs, client=client)
    world.hub = replace(world.hub, runs=runs, positions=replace(world.hub.positions, runs=runs))
    return client


def drain(world: HubWorld, receiver: Moody, schedule: Schedule) -> None:
    ledger = world.again(JOURNAL.name)
    Dispatch(ledger, world.states, world.clock, lambda: 0.5, schedule)(A, receiver)


def delivered(world: HubWorld) -> set[str]:
    found = world.deliveries.find("a", None, limit=1000)
    assert max(Counter(one.position for one in found).values(), default=1) == 1, "one delivery per event"
    return {one.event_id for one in found if one.delivery.delivered}


@pytest.mark.parametrize("tens", range(SEEDS // 10))
def test_a_drain_that_dies_anywhere_loses_nothing_and_forgets_nothing(tens: int) -> None:
    """D4, D6"""
    for seed in range(tens * 10, tens * 10 + 10):
        history(seed)


def history(seed: int) -> None:
    chance = random.Random(seed)
    pace = Pace(1000, 4000, 50)
    schedule = Schedule(pace, pace, pace)
    world = on_table(Table(), "delivery")
    client = mortal(world, chance)
    ids = [f"e{number:02}" for number in range(EVENTS)]
    receiver = Moody(chance)
    receiver.refused = True
    known: set[str] = set()
    for turn in range(12):
        if turn < 4:
            world.capture(*ids[turn * EVENTS // 4 : (turn + 1) * EVENTS // 4])
        client.live_for(chance.randrange(1, 40))
        sent = len(receiver.sent)
        try:
            drain(world, receiver, schedule)
            _retry_one(world, chance)
        except Died:
            pass
        client.left = -1
        assert not known & set(receiver.sent[sent:]), "what it has is not sent again"
        now = delivered(world)
        assert known <= now, "no delivered row is forgotten"
        assert now <= receiver.accepted, "what is said to be delivered is"
        known = now
        world.clock.ahead(chance.choice([500, 5000, 700_000]))
    before = list(receiver.sent)
    receiver.refused = False
    _finish(world, receiver, schedule, ids)
    assert delivered(world) == set(ids)
    assert not known & set(receiver.sent[len(before) :]), "what it had is not sent again"
    [(_, position)] = world.hub.positions.all(A)
    assert (position.at, position.delivered) == (EVENTS, EVENTS)
    assert world.hub.positions.lowest_open(A, JOURNAL.name) is None or _only_abandoned(world)
    first = list(dict.fromkeys(receiver.sent))
    assert first == ids, "first attempts are in order"


def _retry_one(world: HubWorld, chance: random.Random) -> None:
    retry = Retry(world.deliveries, world.journal, world.clock)
    for found in world.deliveries.find("a", Status.TERMINAL_FAILED, limit=5):
        if chance.random() < 0.5:
            try:
                retry("a", found.event_id)
            except MillraceError:
                continue


def _finish(world: HubWorld, receiver: Moody, schedule: Schedule, ids: list[str]) -> None:
    """Nothing dies any more and the target takes everything; but nobody rings: only what is noted as due is visited."""
    agenda = DynamoAgenda(world.hub.runs)
    for _ in range(8):
        world.clock.ahead(DAY)
        if world.hub.positions.stored(A, JOURNAL.name) < len(ids):
            agenda.note(A, [JOURNAL.name])
        for found in world.deliveries.find("a", Status.TERMINAL_FAILED, limit=100):
            Retry(world.deliveries, world.journal, world.clock)("a", found.event_id)
        if agenda.due(A, world.clock(), 1):
            ledger = world.again()
            Dispatch(ledger, world.states, world.clock, lambda: 0.5, schedule)(A, receiver)
        if delivered(world) == set(ids):
            return


def _only_abandoned(world: HubWorld) -> bool:
    """Pointers to nothing, which a process left that died; a later selection takes them away."""
    world.clock.ahead(DAY)
    world.hub.select(A, JOURNAL.name, world.clock() + DAY, 10, 1000)
    return world.hub.positions.lowest_open(A, JOURNAL.name) is None
