"""Journals, targets and clocks for the tests of delivery; the same tests run in memory and on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from millrace.delivery.adapters.memory.targets import MemoryTargets
from millrace.delivery.application.dispatch import Dispatch, Drained
from millrace.delivery.domain.events import captured
from millrace.delivery.domain.families import Families
from millrace.delivery.domain.outcomes import Answer, Verdict
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.selection import Pick
from millrace.delivery.domain.states import Delivery, Outcome, Status
from millrace.delivery.domain.targets import Blocked, Target
from millrace.delivery.ports.deliveries import Deliveries, DeliveryLedger, DeliveryReceiver, TargetStates
from millrace_client.journal.capture import Capture
from millrace_client.journal.memory.journal import MemoryJournal
from millrace_client.journal.memory.ledger import MemoryLedger
from millrace_client.journal.migration_ports import Imports
from millrace_client.journal.ports import Journal, Payloads
from millrace_client.journal.sqlite.database import Database
from millrace_client.journal.sqlite.imports import SqliteImports
from millrace_client.journal.sqlite.journal import SqliteJournal
from millrace_client.journal.sqlite.ledger import LEDGER, SqliteLedger
from millrace_client.journal.sqlite.targets import SqliteTargets

A = Target("a", "stub")
B = Target("b", "stub")


@dataclass
class Clock:
    now_ms: int = 1_000_000

    def __call__(self) -> int:
        return self.now_ms

    def ahead(self, ms: int) -> None:
        self.now_ms += ms


@dataclass
class World:
    """One journal with everything that stands on it."""

    journal: Journal
    payloads: Payloads
    ledger: DeliveryLedger
    deliveries: Deliveries
    states: TargetStates
    imports: Imports
    clock: Clock = field(default_factory=Clock)
    families: Families = field(default_factory=Families)
    schedule: Schedule = field(default_factory=Schedule)

    def capture(self, *ids: str, kind: str = "note", key: str | None = None, **more: Any) -> None:
        events = [captured(event(id_, kind, **more), key) for id_ in ids]
        Capture(self.journal, self.families, self.clock)(events)

    def drain(self, receiver: DeliveryReceiver, target: Target = A) -> Drained:
        self.know(target)
        return Dispatch(self.ledger, self.states, self.clock, lambda: 0.0, self.schedule)(target, receiver)

    def know(self, target: Target, *, start_now: bool = False) -> Target:
        if isinstance(self.states, SqliteTargets):
            return self.states.add(target, self.clock(), start_now=start_now)
        assert isinstance(self.journal, MemoryJournal)
        if start_now:
            target = replace(target, start_at=len(self.journal.kept))
        if target not in self.journal.targets:
            self.journal.targets.append(target)
        return target

    def delivery(self, event_id: str, target: Target = A) -> Delivery | None:
        found = self.deliveries.get(target.id, event_id)
        return None if found is None else found.delivery

    def statuses(self, target: Target = A) -> dict[str, str]:
        return {found.event_id: found.delivery.status.value for found in self.deliveries.find(target.id, None)}


def in_memory() -> World:
    journal = MemoryJournal()
    ledger = MemoryLedger({LEDGER: journal})
    journal.delivery_of = lambda target_id, position: ledger.delivery(target_id, LEDGER, position)
    journal.rewind = lambda position: ledger.rewind(LEDGER, position)
    return World(journal, journal, ledger, ledger, MemoryTargets(), journal)


def on_sqlite(path: Path) -> World:
    database = Database(path)
    journal, ledger = SqliteJournal(database), SqliteLedger(database)
    return World(journal, journal, ledger, ledger, SqliteTargets(database), SqliteImports(database))


def event(event_id: str, kind: str = "note", **more: Any) -> bytes:
    return json.dumps({"event_id": event_id, "event_type": kind, **more}).encode()


@dataclass
class Scripted:
    """A receiver that gives these answers, then takes everything; it keeps what it was offered."""

    answers: list[Any] = field(default_factory=list)
    most_events: int = 1000
    most_bytes: int = 1024 * 1024
    blocked: tuple[Blocked, str] | None = None
    offered: list[list[str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def gate(self) -> tuple[Blocked, str] | None:
        return self.blocked

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        self.offered.append([pick.event_id for pick in picks])
        self.bodies += [pick.body for pick in picks]
        answer = self.answers.pop(0) if self.answers else accept
        made: Answer = answer(picks) if callable(answer) else answer
        return made

    @property
    def sent(self) -> list[str]:
        return [event_id for batch in self.offered for event_id in batch]


def accept(picks: Sequence[Pick]) -> Answer:
    return results(**{pick.event_id: "success" for pick in picks})


def results(**statuses: str) -> Answer:
    return Answer(Verdict.RESULTS, {id_: Outcome(Status(status)) for id_, status in statuses.items()})
