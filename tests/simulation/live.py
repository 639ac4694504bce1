"""Live delivery in the simulator: connections that sync and go live, snapshots, fan-outs that die and race."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event
from millrace.live.adapters.memory import MemoryConnections, MemorySubscriptions
from millrace.live.domain.shards import EVERYONE, Shard
from millrace.live.ports import Handover, Subscription, TakenSnapshot
from tests.simulation.tables import Process


@dataclass(slots=True)
class Socket:
    """A client's end of a connection: what arrived, in order, as (kind, position)."""

    id: str
    ledger: Ledger
    partitions: frozenset[str] | None
    arrived: list[tuple[str, int]] = field(default_factory=list)
    open: bool = True
    covered: int | None = None
    """Everything up to here came, or will come, with pages or the snapshot: known after the first answer."""
    complete: bool = False
    """All pages, or the whole snapshot, have come and it is live: until it is told of a gap, which ends it."""
    begin: int = 0


@dataclass(slots=True)
class Net:
    """All sockets, and what live delivery keeps in tables."""

    subscriptions: MemorySubscriptions = field(default_factory=MemorySubscriptions)
    connections: MemoryConnections = field(default_factory=MemoryConnections)
    sockets: dict[str, Socket] = field(default_factory=dict)


@dataclass(slots=True)
class FaultySubscriptions:
    process: Process
    inner: MemorySubscriptions

    def add(self, subscription: Subscription) -> None:
        self.process.call(lambda: self.inner.add(subscription))

    def find(
        self, ledger: Ledger, partitions: Collection[str], shard: Shard = EVERYONE, most: int | None = None
    ) -> Sequence[Subscription]:
        return self.process.call(lambda: self.inner.find(ledger, partitions, shard, most))

    def note_missed(self, subscription: Subscription, through: int) -> Subscription | None:
        return self.process.call(lambda: self.inner.note_missed(subscription, through))

    def go_live(self, subscription: Subscription, sent: int) -> int | None:
        return self.process.call(lambda: self.inner.go_live(subscription, sent))

    def hand_over(self, subscription: Subscription, step: int, until_ms: int) -> bool:
        return self.process.call(lambda: self.inner.hand_over(subscription, step, until_ms))

    def take_over(self, handover: Handover, until_ms: int, sender: str) -> TakenSnapshot | None:
        return self.process.call(lambda: self.inner.take_over(handover, until_ms, sender))

    def remove(self, connection: str, id_: str | None = None) -> None:
        self.process.call(lambda: self.inner.remove(connection, id_))


@dataclass(slots=True)
class FaultyHandovers:
    """A message that was sent brings a sender, some time later, or two."""

    process: Process
    bring: Callable[[Handover], None]

    def send(self, handover: Handover) -> None:
        self.process.call(lambda: self.bring(handover))


@dataclass(slots=True)
class FaultyWire:
    """Texts are `kind position`; a post may fail before or after it arrived, a close before it closed."""

    process: Process
    net: Net
    rng: random.Random

    def post(self, connection: str, text: str) -> bool:
        self.process.scheduler.pause()
        socket = self.net.sockets[connection]
        if not socket.open:
            return False
        fate = self.rng.random()
        if fate < self.process.trouble / 4:
            raise Unavailable("lost")
        kind, _, position = text.partition(" ")
        socket.arrived.append((kind, int(position)))
        socket.complete = socket.complete and kind != "gap"
        self.process.scheduler.pause()
        if fate < self.process.trouble / 2:
            raise Unavailable("answer lost")
        return True

    def close(self, connection: str) -> None:
        self.process.scheduler.pause()
        if self.rng.random() < self.process.trouble / 2:
            raise Unavailable("not closed")
        self.net.sockets[connection].open = False


def render(subscription: Subscription, event: Event) -> str:
    return f"{'broadcast' if subscription.id == 'sync' else 'live'} {event.position}"
