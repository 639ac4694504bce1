"""What live delivery needs from the world: connections, their subscriptions, and the wire to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.names import Ledger
from millrace.live.domain.shards import EVERYONE, Shard


@dataclass(frozen=True, slots=True)
class Cycle:
    """A connection's running sync cycle: where its next page starts, and the watermark it ends at."""

    partitions: tuple[str, ...] | None
    next_since: int
    sync_to: int


@dataclass(frozen=True, slots=True)
class Connection:
    """What the hub remembers of a socket between two messages. No identity: it has not said `connect` yet."""

    id: str
    dialect: str = ""
    identity: Identity | None = None
    project: str = ""
    expires_ms: int = 0
    """When its token ends."""
    cycle: Cycle | None = None
    subscribed: int = 0
    """How often it said `subscribe`."""
    missteps: int = 0
    """How often it was told of an error before it said `connect`."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message's place in its connection's line, or why it got none. It is handled when all before it are done."""

    kind: str = ""
    connection: Connection | None = None
    """As the last message that is done left it."""
    refused: str = ""
    """`gone`, `rate`, `in_flight`, `sync`: one is in the line already, or `stuck`: nobody works on those before it."""
    number: int = 0
    served: int = 0
    """The number of the last message that is done."""
    moved_ms: int = 0
    """When that one was done."""
    slow: int = 0
    """The number of the last message that may take long; 0: none has come."""
    seconds: tuple[int, ...] = ()
    """Those in which messages were counted. Past ones are dropped when the turn ends."""

    @property
    def ahead(self) -> int:
        """How many messages are still to be done before this one."""
        return self.number - self.served - 1


class Connections(Protocol):
    def open(self, id_: str, now_ms: int) -> None:
        """Remember a new socket."""

    def line_up(self, id_: str, kind: str, now_ms: int) -> Turn:
        """Give a message the next number of its connection, in one atomic step: it is counted in its second and, if it
        submits, among those in flight. A message that is over a limit gets no number."""

    def look(self, id_: str, turn: Turn) -> Turn:
        """The same place in the line of now. Strongly consistent. `gone` when the connection was removed."""

    def end_turn(self, turn: Turn, connection: Connection, now_ms: int) -> None:
        """Store what the message changed, and let the next one in."""

    def is_stranger(self, id_: str, now_ms: int) -> bool:
        """Whether it has not said who it is, or is not known at all. Strongly consistent. Raises `Unavailable` while a
        message of it is handled, which may be the one that says it."""

    def remove(self, id_: str) -> None:
        """Forget the connection. Idempotent."""


@dataclass(frozen=True, slots=True)
class OpenSocket:
    """A connection that has said who it is, with its subscriptions: the id of each, and its ledger's name."""

    connection: Connection
    subscriptions: Sequence[tuple[str, str]] = ()


class OpenSockets(Protocol):
    """A tenant's connections as an operator sees them."""

    def page(self, tenant: str, after: str, limit: int) -> Sequence[str]:
        """Up to `limit` ids of connections that take a place, greater than `after`, in order; fewer only at the end."""

    def look(self, connection: str) -> OpenSocket | None:
        """One of them; None if it was removed meanwhile, or has not said who it is."""


class Deadlines(Protocol):
    def set(self, connection: str) -> None:
        """Have somebody look at the connection when its time to say `connect` is over."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """Who wants which events of a ledger. While a snapshot is being sent to it, it is not live."""

    connection: str
    id: str
    ledger: str
    partitions: tuple[str, ...] | None
    """None: every event of the ledger."""
    dialect: str
    project: str
    expires_ms: int
    after: int
    """Only events above this position are live for it."""
    sender_until_ms: int = 0
    """Not 0: a snapshot is being sent, by a process that is dead after this time."""

    @property
    def live(self) -> bool:
        return self.sender_until_ms == 0


@dataclass(frozen=True, slots=True)
class Handover:
    """The rest of a snapshot, for another sender: all that concerns the subscription up to `sent` has been sent."""

    connection: str
    id: str
    ledger: str
    sent: int
    watermark: int
    step: int
    """Which handover of this subscription it is: the first sender has step 0, to hand over or take over is a step."""


@dataclass(frozen=True, slots=True)
class TakenSnapshot:
    """A subscription as whoever wanted to take its snapshot over found it. `mine`: it did."""

    subscription: Subscription
    step: int
    mine: bool


class Subscriptions(Protocol):
    def add(self, subscription: Subscription) -> None:
        """Make it durable, in place of the connection's earlier one of that id."""

    def find(
        self, ledger: Ledger, partitions: Collection[str], shard: Shard = EVERYONE, most: int | None = None
    ) -> Sequence[Subscription]:
        """Those of the shard that any of these partitions, or the whole ledger, concerns; each once. Strongly
        consistent, not cached; the cost follows what is found. If there are more than `most`, some may be left out, but
        more than that are found: the first of them, by their keys."""

    def note_missed(self, subscription: Subscription, through: int) -> Subscription | None:
        """Tell the snapshot's sender that the log goes on to `through`. None when the note is left; if it has gone
        live meanwhile, the live subscription."""

    def go_live(self, subscription: Subscription, sent: int) -> int | None:
        """Become live after `sent`, unless a note says the sender must go on: then that position."""

    def hand_over(self, subscription: Subscription, step: int, until_ms: int) -> bool:
        """Leave the snapshot to whoever takes it over at the next step, until then. False when the subscription is
        gone, or at another step. Idempotent."""

    def take_over(self, handover: Handover, until_ms: int, sender: str) -> TakenSnapshot | None:
        """Become the sender of the rest, until then, if nobody did before at this step. None when the subscription is
        gone. Idempotent for one sender."""

    def remove(self, connection: str, id_: str | None = None) -> None:
        """Forget one subscription of a connection, or all. Idempotent."""


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """How far a shard has been served: everything up to `through` was sent to everyone in it who was to have it."""

    through: int = 0
    until_ms: int = 0
    """A worker holds the shard until then; 0: nobody does."""
    found: int = 0
    """About how many connections it has."""


@dataclass(frozen=True, slots=True)
class Share:
    """A shard of a ledger's crowd that may have something due. Everything up to `base` was sent to everyone."""

    ledger: str
    shard: Shard
    base: int


class Shards(Protocol):
    def split(self, ledger: Ledger, before: int, count: int) -> bool:
        """Split the ledger's crowd into `count` shards, if it was split into `before`; `marks` tells it to everyone.
        Idempotent. False if it is split otherwise."""

    def progress(self, ledger: Ledger, count: int, first: int, last: int) -> Mapping[int, ShardProgress]:
        """Of the shards from `first` to `last`, both included, when there are `count`; by number, strongly consistent.
        A shard that nobody served yet is left out."""

    def take(self, ledger: Ledger, shard: Shard, holder: str, now_ms: int, until_ms: int) -> ShardProgress | None:
        """Hold the shard until then, unless another holds it now: then None. Idempotent for one holder."""

    def move(self, ledger: Ledger, shard: Shard, holder: str, progress: ShardProgress) -> bool:
        """Store how far it is served and until when it is held, if this holder was the last to take it. Idempotent."""


class Crew(Protocol):
    def call(self, shares: Sequence[Share]) -> None:
        """Have somebody serve each of these shards, soon, side by side. A call may come twice."""


class Handovers(Protocol):
    def send(self, handover: Handover) -> None:
        """Have somebody go on with the snapshot, soon. It may come more than once."""


class Places(Protocol):
    """The places that a tenant's connections and subscriptions take. Each is given back when its connection or its
    subscription is removed, or ends with the life of a connection at the latest."""

    def of_connection(self, tenant: str, connection: str) -> int:
        """Take a place for a connection that is open. Returns how many connections the tenant has with this one, at
        least all whose place was taken before."""

    def leave(self, tenant: str, connection: str) -> None:
        """Give a connection's place back although it is open. Idempotent."""

    def of_subscription(self, tenant: str, connection: str, id_: str) -> int:
        """The same for a subscription that was added."""


class DeliveryWakes(Protocol):
    def __call__(self, ledgers: Sequence[str], /) -> object:
        """Wake whoever has these ledgers delivered. Raises `Unavailable` when somebody may have slept on."""


class Wire(Protocol):
    def post(self, connection: str, text: str) -> bool:
        """Send a message; False when the connection is gone. Raises `Unavailable` when it may have arrived or not."""

    def close(self, connection: str) -> None:
        """End the connection. A gone one is fine."""
