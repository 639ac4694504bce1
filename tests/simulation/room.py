"""The waiting room and the board for the simulator: what they ever held, and views of them on their bad days."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from millrace.ledger.adapters.memory_room import MemoryBoard, MemoryRoom
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.receipts import pack, unpack
from millrace.ledger.domain.waiting import Notice, Waiting
from tests.simulation.history import broken
from tests.simulation.tables import Process

STALE = 0.15
"""How often the board is read as it was a moment ago."""


@dataclass(slots=True)
class RecordedRoom(MemoryRoom):
    left: dict[tuple[str, bytes], Waiting] = field(default_factory=dict)
    """Every request that ever waited, by ledger and nonce."""

    def leave(self, ledger: Ledger, request: Waiting) -> None:
        MemoryRoom.leave(self, ledger, request)
        self.left[ledger.name, request.nonce] = request


@dataclass(slots=True)
class RecordedBoard(MemoryBoard):
    past: dict[str, list[Notice]] = field(default_factory=dict)

    def post(self, ledger: Ledger, leader: bytes, notice: Notice) -> bool:
        notice = replace(notice, receipts=unpack(pack(notice.receipts)))
        self.past.setdefault(ledger.name, [Notice()]).append(self.notices.get(ledger.name, Notice()))
        return MemoryBoard.post(self, ledger, leader, notice)


@dataclass(slots=True)
class FaultyRoom:
    """Rows come back after they were cleared, some are overlooked, and a clearing is done by half."""

    process: Process
    inner: RecordedRoom
    may_clear: Callable[[Ledger, bytes], bool]

    def leave(self, ledger: Ledger, request: Waiting) -> None:
        self.process.call(lambda: self.inner.leave(ledger, request))
        self._late(lambda: self.inner.leave(ledger, request))

    def look(self, ledger: Ledger) -> Sequence[Waiting]:
        rows = list(self.process.call(lambda: self.inner.look(ledger)))
        rng = self.process.rng
        if self._unlucky():
            rows = [row for row in rows if rng.random() < 0.5]
        if self._unlucky():
            rows += [row for (name, _), row in self.inner.left.items() if name == ledger.name and rng.random() < 0.5]
        rng.shuffle(rows)
        return rows

    def clear(self, ledger: Ledger, nonces: Sequence[bytes]) -> None:
        for nonce in nonces:
            broken(not self.may_clear(ledger, nonce), "a request was cleared before it was done:", nonce)
        cleared = [nonce for nonce in nonces if not self._unlucky()]
        self.process.call(lambda: self.inner.clear(ledger, cleared))
        self._late(lambda: self.inner.clear(ledger, cleared))

    def _unlucky(self) -> bool:
        return self.process.rng.random() < self.process.trouble

    def _late(self, effect: Callable[[], None]) -> None:
        """A repeat that the network kept for a while."""
        if self._unlucky():
            self.process.scheduler.spawn(effect, delay=self.process.rng.randint(1, 40))


@dataclass(slots=True)
class FaultyBoard:
    """Reads are old, posts are lost or come late, leases end early, and two are told that they lead."""

    process: Process
    inner: RecordedBoard

    def read(self, ledger: Ledger) -> Notice:
        notice = self.process.call(lambda: self.inner.read(ledger))
        past = self.inner.past.get(ledger.name, [])
        if past and self.process.rng.random() < STALE:
            return self.process.rng.choice(past[-4:])
        return replace(notice, until_ms=0) if self._unlucky() else notice

    def take(self, ledger: Ledger, leader: bytes, now_ms: int, until_ms: int) -> bool:
        taken = self.process.call(lambda: self.inner.take(ledger, leader, now_ms, until_ms))
        return taken or self._unlucky()

    def post(self, ledger: Ledger, leader: bytes, notice: Notice) -> bool:
        if self._unlucky():
            late = replace(notice)
            delay = self.process.rng.randint(1, 40)
            self.process.scheduler.spawn(lambda: self.inner.notices.update({ledger.name: late}), delay=delay)
            return True
        return self.process.call(lambda: self.inner.post(ledger, leader, notice))

    def _unlucky(self) -> bool:
        return self.process.rng.random() < self.process.trouble
