"""Delivery from the hub: what a delivered event costs in DynamoDB, and what selection costs by what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from millrace.delivery.adapters.dynamodb.directory import DynamoDirectory, DynamoTargetStates
from millrace.delivery.adapters.dynamodb.ledger import DynamoDeliveryLedger
from millrace.delivery.adapters.dynamodb.positions import DynamoPositions
from millrace.delivery.adapters.dynamodb.runs import Runs
from millrace.delivery.application.dispatch import Dispatch
from millrace.delivery.application.gather import GatherEvents
from millrace.delivery.domain.outcomes import Answer, Verdict, held
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.states import Outcome, Status
from millrace.delivery.domain.targets import Blocked, Target
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft
from tests.bench.report import Section, Table, at_most
from tests.bench.rig import Clock, Rig, own_rig
from tests.bench.tally import Counts

PER_PAGE = 100
STORED = (1_000, 100_000)
HOUR = 3_600_000


@dataclass
class Receiver:
    """Takes everything, but for what it is told to say first."""

    most_events: int = 1000
    most_bytes: int = 1024 * 1024
    first: list[str] = field(default_factory=list)
    """Of a batch: `held`, or a status for every 20th event."""

    def gate(self) -> tuple[Blocked, str] | None:
        return None

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        word = self.first.pop(0) if self.first else "success"
        if word == "held":
            return held("answered 500")
        return Answer(
            Verdict.RESULTS,
            {pick.event_id: Outcome(Status(word if at % 20 == 0 else "success")) for at, pick in enumerate(picks)},
        )


@dataclass(frozen=True, slots=True)
class Drains:
    """Drains of one target, in a ledger with so many events."""

    rig: Rig
    ledger: Ledger
    clock: Clock
    target: Target

    def __call__(self, receiver: Receiver) -> Counts:
        runs = Runs(self.rig.tables.client, self.rig.tables.delivery, self.rig.together)
        positions = DynamoPositions(runs, self.rig.state)
        gather = GatherEvents(self.rig.log, self.rig.together)
        ledger = DynamoDeliveryLedger(runs, positions, gather, self.clock, rung=(self.ledger.name,))
        states = DynamoTargetStates(DynamoDirectory(runs.client, runs.table))
        with self.rig.tally.measured() as counts:
            Dispatch(ledger, states, self.clock, lambda: 0.0)(self.target, receiver)
        return counts


def drains(rig: Rig, events: int, per_page: int = PER_PAGE) -> Drains:
    ledger = Ledger.of("delivery", "bench", f"team-{next(rig.names)}")
    rig.fill(ledger, made(0, events), per_page)
    return Drains(rig, ledger, Clock(), Target(f"bench#{ledger.name.replace('#', '.')}", "stub"))


def made(first: int, count: int) -> list[Draft]:
    body = b'{"event_id":"e%07d","event_type":"note.added","payload":{"text":"' + b"x" * 400 + b'"}}'
    return [Draft(f"e{n:07d}", b"d" * 17, body % n) for n in range(first, first + count)]


def row(case: str, events: int, counts: Counts) -> dict[str, Any]:
    units = counts.write_units("delivery")
    return {
        "case": case,
        "events": events,
        "write units": units,
        "write units per event": round(units / events, 4),
        "read units (delivery)": counts.read_units("delivery"),
        "calls": counts.calls_to("delivery", "log", "state"),
    }


def delivered(rig: Rig, events: int, most_events: int = 1000) -> Counts:
    """A ledger's events, all of them new and all of them taken."""
    return drains(rig, events)(Receiver(most_events))


def retried(rig: Rig, events: int, word: str) -> tuple[Counts, Counts]:
    """A first attempt of which not everything was taken, and the one that was."""
    again = drains(rig, events)
    first = again(Receiver(first=[word]))
    again.clock.now += HOUR
    return first, again(Receiver())


def selecting(rig: Rig, stored: int) -> Counts:
    """One new event, after so many that were delivered long ago."""
    again = drains(rig, stored, per_page=1000 if stored > 10_000 else PER_PAGE)
    again(Receiver())
    rig.fill(again.ledger, made(stored, 1), 1, stored)
    return again(Receiver())


def cost_rows(rig: Rig) -> list[dict[str, Any]]:
    rows = [
        row("batches of 1000", 1000, delivered(rig, 1000)),
        row("batches of 100", 1000, delivered(rig, 1000, 100)),
        row("webhooks, one event a request", 100, delivered(rig, 100, 1)),
    ]
    for word, case in (("held", "a batch that failed as a whole"), ("rejected", "a batch with every 20th rejected")):
        first, second = retried(rig, 1000, word)
        rows += [row(f"{case}: the attempt", 1000, first), row(f"{case}: the next", 1000, second)]
    return rows


def run() -> Section:
    with own_rig() as rig:
        costs = cost_rows(rig)
        selections = [{"stored": stored, **row("one new event", 1, selecting(rig, stored))} for stored in STORED]
    small, large = selections
    return Section(
        [
            Table("costs", "What deliveries cost in the delivery table", costs),
            Table("selection", "A drain of one new event by what is stored", selections),
        ],
        [
            at_most("write units per event in batches of 1000", 0.002, costs[0]["write units per event"]),
            at_most("write units per event as webhooks", 2, costs[2]["write units per event"]),
            at_most(
                "calls of a drain at 100,000 stored events over those at 1,000", 1, large["calls"] / small["calls"]
            ),
        ],
    )
