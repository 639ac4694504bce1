"""In-memory connections, subscriptions and wire of live delivery."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.live.domain.line import SLOW, SUBMIT, SYNC, TURN_MS, is_dead
from millrace.live.domain.messages import MAX_IN_FLIGHT, MAX_MESSAGES_PER_SECOND
from millrace.live.domain.shards import EVERYONE, Shard, key_of
from millrace.live.ports import Connection, Handover, Subscription, TakenSnapshot, Turn


@dataclass(slots=True)
class _Row:
    connection: Connection
    taken: int = 0
    served: int = 0
    moved: int = 0
    slow: int = 0
    in_flight: int = 0
    syncs: bool = False
    until: int = 0
    window: tuple[int, int] = (0, 0)

    def turn(self, kind: str, number: int) -> Turn:
        return Turn(kind, self.connection, "", number, self.served, self.moved, self.slow)


@dataclass(slots=True)
class MemoryConnections:
    rows: dict[str, _Row] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def open(self, id_: str, now_ms: int) -> None:  # noqa: ARG002 - nothing expires in memory
        with self.lock:
            self.rows[id_] = _Row(Connection(id_))

    def line_up(self, id_: str, kind: str, now_ms: int) -> Turn:
        with self.lock:
            row = self.rows.get(id_)
            if row is None:
                return Turn(kind, refused="gone")
            if is_dead(row.taken, row.served, row.until, now_ms):
                return Turn(kind, refused="stuck")
            if kind == SYNC and row.syncs:
                return Turn(kind, refused=SYNC)
            second, count = row.window
            count = count + 1 if second == now_ms // 1000 else 1
            if count > MAX_MESSAGES_PER_SECOND:
                return Turn(kind, refused="rate")
            if kind == SUBMIT and row.in_flight >= MAX_IN_FLIGHT:
                return Turn(kind, refused="in_flight")
            row.window, row.until = (now_ms // 1000, count), now_ms + TURN_MS
            row.taken += 1
            row.in_flight += kind == SUBMIT
            row.syncs = row.syncs or kind == SYNC
            row.slow = row.taken if kind in SLOW else row.slow
            return row.turn(kind, row.taken)

    def look(self, id_: str, turn: Turn) -> Turn:
        with self.lock:
            row = self.rows.get(id_)
            return replace(turn, refused="gone") if row is None else row.turn(turn.kind, turn.number)

    def end_turn(self, turn: Turn, connection: Connection, now_ms: int) -> None:
        with self.lock:
            row = self.rows.get(connection.id)
            if row is not None and row.served < turn.number:
                row.connection, row.served, row.moved = connection, turn.number, now_ms
                row.in_flight -= turn.kind == SUBMIT
                row.syncs = row.syncs and turn.kind != SYNC

    def is_stranger(self, id_: str, now_ms: int) -> bool:
        with self.lock:
            row = self.rows.get(id_)
            if row is not None and row.served < row.taken and not is_dead(row.taken, row.served, row.until, now_ms):
                raise Unavailable("A message of this connection is being handled.")
            return row is None or row.connection.identity is None

    def remove(self, id_: str) -> None:
        with self.lock:
            self.rows.pop(id_, None)


@dataclass(slots=True)
class MemorySubscriptions:
    rows: dict[tuple[str, str], Subscription] = field(default_factory=dict)
    notes: dict[tuple[str, str], int] = field(default_factory=dict)
    senders: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    """The step that a snapshot is at, and who took it over."""
    lock: Lock = field(default_factory=Lock)

    def add(self, subscription: Subscription) -> None:
        with self.lock:
            key = (subscription.connection, subscription.id)
            self.rows[key] = subscription
            self.notes.pop(key, None)
            self.senders.pop(key, None)

    def find(
        self, ledger: Ledger, partitions: Collection[str], shard: Shard = EVERYONE, most: int | None = None
    ) -> Sequence[Subscription]:
        with self.lock:
            found = [
                row
                for row in self.rows.values()
                if row.ledger == ledger.name
                and shard.holds(key_of(row.connection, row.id))
                and (row.partitions is None or not set(row.partitions).isdisjoint(partitions))
            ]
        if most is None or len(found) <= most:
            return found
        return sorted(found, key=lambda row: key_of(row.connection, row.id))[: most + 1]

    def note_missed(self, subscription: Subscription, through: int) -> Subscription | None:
        with self.lock:
            key = (subscription.connection, subscription.id)
            row = self.rows.get(key)
            if row is not None and row.live:
                return row
            self.notes[key] = max(through, self.notes.get(key, 0))
            return None

    def go_live(self, subscription: Subscription, sent: int) -> int | None:
        with self.lock:
            key = (subscription.connection, subscription.id)
            note = self.notes.get(key, 0)
            if note > sent:
                return note
            if key in self.rows:
                self.rows[key] = replace(self.rows[key], after=sent, sender_until_ms=0)
            return None

    def hand_over(self, subscription: Subscription, step: int, until_ms: int) -> bool:
        with self.lock:
            key = (subscription.connection, subscription.id)
            now, _ = self.senders.get(key, (0, ""))
            if key not in self.rows or now not in (step, step + 1):
                return False
            self.senders[key] = (step + 1, "")
            self.rows[key] = replace(self.rows[key], sender_until_ms=until_ms)
            return True

    def take_over(self, handover: Handover, until_ms: int, sender: str) -> TakenSnapshot | None:
        with self.lock:
            key = (handover.connection, handover.id)
            if key not in self.rows:
                return None
            step, by = self.senders.get(key, (0, ""))
            if step == handover.step:
                step, by = self.senders[key] = (step + 1, sender)
                self.rows[key] = replace(self.rows[key], sender_until_ms=until_ms)
            return TakenSnapshot(self.rows[key], step, mine=by == sender)

    def remove(self, connection: str, id_: str | None = None) -> None:
        with self.lock:
            for key in [key for key in self.rows if key[0] == connection and id_ in (None, key[1])]:
                del self.rows[key]


@dataclass(slots=True)
class MemoryPlaces:
    connections: MemoryConnections
    subscriptions: MemorySubscriptions
    taken: set[tuple[str, str, str]] = field(default_factory=set)

    def of_connection(self, tenant: str, connection: str) -> int:
        self.taken.add((tenant, connection, ""))
        return sum(1 for of, id_, name in self.taken if of == tenant and not name and id_ in self.connections.rows)

    def leave(self, tenant: str, connection: str) -> None:
        self.taken.discard((tenant, connection, ""))

    def of_subscription(self, tenant: str, connection: str, id_: str) -> int:
        self.taken.add((tenant, connection, id_))
        return sum(1 for of, *key in self.taken if of == tenant and tuple(key) in self.subscriptions.rows)


@dataclass(slots=True)
class MemoryWire:
    """Sockets as lists of what was sent; a closed one is no longer in `sent`'s keys but in `closed`."""

    sent: dict[str, list[str]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)

    def post(self, connection: str, text: str) -> bool:
        if connection in self.closed:
            return False
        self.sent.setdefault(connection, []).append(text)
        return True

    def close(self, connection: str) -> None:
        self.closed.add(connection)


@dataclass(slots=True)
class MemoryHandovers:
    sent: list[Handover] = field(default_factory=list)

    def send(self, handover: Handover) -> None:
        self.sent.append(handover)
