"""The hub's journal for the tests of delivery: a committed ledger, and a delivery ledger in DynamoDB beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from moto import mock_aws

from millrace.delivery.adapters.dynamodb.directory import DynamoDirectory, DynamoTargetStates
from millrace.delivery.adapters.dynamodb.ledger import DynamoDeliveryLedger
from millrace.delivery.adapters.dynamodb.listing import DynamoDeliveries
from millrace.delivery.adapters.dynamodb.positions import DynamoPositions
from millrace.delivery.adapters.dynamodb.runs import Runs
from millrace.delivery.application.dispatch import Drained
from millrace.delivery.application.find_event import FindEvent
from millrace.delivery.application.gather import GatherEvents
from millrace.delivery.domain.events import Captured
from millrace.delivery.domain.families import Family
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.deliveries import DeliveryReceiver
from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState, in_turn
from millrace.ledger.domain.names import Ledger, bucket_end
from millrace.ledger.domain.page import Origin, Page, Record
from millrace.ledger.ports import Together
from millrace_client.journal.ports import Taken
from tests.support.aws_tables import client_for, make_table
from tests.support.worlds import Clock, World

TENANT = "acme"
JOURNAL = Ledger.of("delivery", TENANT, "team")
A = Target(f"{TENANT}#a", "stub")
B = Target(f"{TENANT}#b", "stub")


@dataclass
class Committed:
    """A committed ledger as its writers leave it; what `Journal` wants of it."""

    ledger: Ledger = JOURNAL
    log: MemoryLog = field(default_factory=MemoryLog)
    claims: MemoryClaims = field(default_factory=MemoryClaims)
    state: MemoryState = field(default_factory=MemoryState)
    head: int = 0
    audits: list[tuple[str, Sequence[str], str]] = field(default_factory=list)

    def capture(self, events: Sequence[tuple[Captured, Family]], now_ms: int) -> Sequence[Taken]:
        self.commit([(event.event_id, event.body) for event, _ in events], now_ms)
        return [Taken(event.event_id, True) for event, _ in events]

    def audit(self, what: str, subjects: Sequence[str], detail: str, now_ms: int) -> None:
        self.audits.append((what, subjects, detail))

    def commit(self, events: Sequence[tuple[str, bytes]], now_ms: int = 0) -> None:
        """As one page, or more at a bucket's end."""
        self.state.register(self.ledger)
        self.claims.create(self.ledger, [id_ for id_, _ in events], self.head)
        left = [Record(id_, b"digest", body) for id_, body in events]
        while left:
            some = left[: bucket_end(self.head + 1) - self.head]
            page = Page(self.head + 1, tuple(some), now_ms, Origin("C1"), b"nonce")
            assert self.log.append(self.ledger, page) is None
            self.head, left = page.end, left[len(some) :]

    def remove(self, positions: Sequence[int], how: str, where: str, now_ms: int) -> None:
        self.prune(*positions)

    def prune(self, *positions: int) -> None:
        for position in positions:
            page = self.log.holding(self.ledger, position)
            assert page is not None
            assert self.log.replace(self.ledger, page.emptied([position]))


@dataclass
class HubWorld(World):
    committed: Committed = field(default_factory=Committed)
    hub: Any = None
    """The delivery ledger itself; `ledger` is the same under the tests' short target ids."""

    def again(self, *rung: str) -> DynamoDeliveryLedger:
        """The ledger of another drain."""
        fresh = GatherEvents(self.hub.events.log, self.hub.events.together)
        self.hub = replace(self.hub, events=fresh, rung=rung)
        self.ledger = Keyed(self.hub)
        made: DynamoDeliveryLedger = self.hub
        return made

    def drain(self, receiver: DeliveryReceiver, target: Target = A) -> Drained:
        self.again(JOURNAL.name)
        return super().drain(receiver, target)

    def know(self, target: Target, *, start_now: bool = False) -> Target:
        self.again(JOURNAL.name)
        if start_now:
            self.hub.positions.begin_at(on_hub(target), JOURNAL.name, self.committed.head)
        return target


@dataclass
class Keyed:
    """Turns a test's target, or its id, into one with a tenant."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        return lambda first, *rest, **more: method(on_hub(first), *rest, **more)


def on_hub(given: Any) -> Any:
    """Under a key that names the tenant too."""
    if isinstance(given, Target):
        return replace(given, id=on_hub(given.id))
    return f"{TENANT}#{given}" if isinstance(given, str) and "#" not in given else given


def on_dynamodb(client: Any, together: Together = in_turn) -> HubWorld:
    return on_table(client, make_table(client, "Delivery"), together)


def on_table(client: Any, table: str, together: Together = in_turn) -> HubWorld:
    committed, clock = Committed(), Clock()
    runs = Runs(client, table, together)
    positions = DynamoPositions(runs, committed.state)
    ledger = DynamoDeliveryLedger(runs, positions, GatherEvents(committed.log, together), clock)
    deliveries = DynamoDeliveries(ledger, FindEvent(committed.claims, committed.log, together, positions), clock)
    states = DynamoTargetStates(DynamoDirectory(client, table))
    unused: Any = None
    pruned: Any = committed
    return HubWorld(
        committed,
        pruned,
        Keyed(ledger),
        Keyed(deliveries),
        Keyed(states),
        unused,
        clock,
        committed=committed,
        hub=ledger,
    )


@contextmanager
def on_moto() -> Iterator[HubWorld]:
    with mock_aws():
        yield on_dynamodb(client_for(None))
