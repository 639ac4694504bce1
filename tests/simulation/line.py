"""Writers that wait in line, in the simulator: a world's patience, clocks that are wrong, and who sent what."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from millrace.ledger.application import commit as commit_module
from millrace.ledger.application import lead as lead_module
from millrace.ledger.application import stint as stint_module
from millrace.ledger.application import wait_in_line as line_module
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.application.lead import Lead
from millrace.ledger.application.wait_in_line import WaitInLine
from millrace.ledger.domain import waiting as waiting_module
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.ledger.domain.waiting import Notice, Waiting
from tests.simulation.room import FaultyBoard, FaultyRoom, RecordedBoard, RecordedRoom
from tests.simulation.scheduler import Scheduler
from tests.simulation.tables import FaultyClaims, FaultyLog, FaultyState, Process, Tables

NUMBER_BYTES = 4
FOREVER_MS = 10**9
SKEWS_MS = (0, -7_000, 7_000, 10**6)


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as its client sent it. Its number begins every nonce that its process makes."""

    ledger: Ledger
    batch: tuple[Draft, ...]
    origin: Origin
    stops: bool

    def first_of_each(self) -> dict[str, Draft]:
        """Of an id that a request holds twice, the first counts."""
        first: dict[str, Draft] = {}
        for draft in self.batch:
            first.setdefault(draft.id, draft)
        return first


@dataclass(slots=True)
class Line:
    rng: random.Random
    scheduler: Scheduler
    tables: Tables
    exists: bool = field(init=False)
    is_crowded: bool = field(init=False)
    """Hardly anybody but writers is there, and they come all at once."""
    wrong_clocks: bool = field(init=False)
    room: RecordedRoom = field(default_factory=RecordedRoom)
    board: RecordedBoard = field(default_factory=RecordedBoard)
    sent: list[Sent] = field(default_factory=list)

    def __post_init__(self) -> None:
        """In most worlds time flies: what is short in life is long there, or never ends."""
        choice = self.rng.choice
        self.exists = self.rng.random() < 0.8
        self.wrong_clocks = self.rng.random() < 0.2
        self.is_crowded = self.exists and self.rng.random() < 0.5
        if self.is_crowded or (self.exists and self.rng.random() < 0.3):
            self.scheduler.strides_ms = (0, 1, 5, 20)
        commit_module.FAST_TRIES = choice((0, 0, 1))
        lease_ms = choice((50, 500, 5_000))
        for module in (lead_module, line_module):
            module.LEASE_MS = lease_ms  # type: ignore[attr-defined]
        lead_module.HAND_OVER_MS = choice((60, 1_000))
        waiting_module.LONGEST_LEASE_MS = choice((1_000, lease_ms, lease_ms))
        stint_module.ROUNDS = choice((1, 2, 6))
        stint_module.MAX_PAGE_BYTES = choice((200, 350_000, 350_000))  # type: ignore[attr-defined]
        line_module.PATIENCE_MS = choice((500, 5_000, FOREVER_MS))
        line_module.GRACE_MS = choice((0, 5_000))
        line_module.LOOK_MS = choice((100, 2_000, 20_000))
        line_module.ROOM_FULL = choice((1, 2_000, 2_000, 2_000))
        line_module.MOST_BYTES = choice((200, 65_536, 65_536, 65_536))

    def begin(self, ledgers: Iterable[Ledger]) -> None:
        """A leader has died a moment ago: whoever comes now waits, and many wait at once."""
        for ledger in ledgers:
            if self.rng.random() < 0.7:
                until = self.scheduler.now() + self.rng.choice((200, 400, 1_000))
                self.board.notices[ledger.name] = Notice(b"dead", until)

    @property
    def is_patient(self) -> bool:
        """Nobody is ever refused for waiting too long, or because too many wait."""
        return line_module.PATIENCE_MS == FOREVER_MS and line_module.ROOM_FULL > 1 and not self.wrong_clocks

    @property
    def furthest_ahead_ms(self) -> int:
        return max(SKEWS_MS) if self.wrong_clocks else 0

    def commit(self, process: Process, heads: Heads, sent: Sent) -> Commit:
        """The use case for one request."""
        number = len(self.sent).to_bytes(NUMBER_BYTES, "big")
        self.sent.append(sent)
        skew = self.rng.choice(SKEWS_MS) if self.wrong_clocks else 0

        def nonce() -> bytes:
            return number + self.rng.randbytes(4)

        def clock() -> int:
            return self.scheduler.now() + skew

        log, state = FaultyLog(process, self.tables.log), FaultyState(process, self.tables.state)

        def may_clear(ledger: Ledger, nonce: bytes) -> bool:
            row = self.room.left.get((ledger.name, nonce))
            ended = row is not None and (clock() >= row.ends_ms or self._is_done(ledger, row))
            return ended or nonce.startswith(number)

        room, board = FaultyRoom(process, self.room, may_clear), FaultyBoard(process, self.board)
        lead = Lead(room=room, board=board, log=log, state=state, together=process.together, clock=clock, nonce=nonce)
        nap = lambda _ms: self.scheduler.pause()  # noqa: E731
        line = WaitInLine(room=room, board=board, lead=lead, log=log, heads=heads, clock=clock, nap=nap)
        return Commit(
            claims=FaultyClaims(process, self.tables.claims),
            log=log,
            state=state,
            heads=heads,
            together=process.together,
            clock=clock,
            nonce=nonce,
            pause=lambda _attempt: self.scheduler.pause(),
            line=line if self.exists else None,
        )

    def _is_done(self, ledger: Ledger, row: Waiting) -> bool:
        """Each event is in the log, up to the conflict that stops the request, if one does."""
        pages = self.tables.log.pages.get(ledger.name, {}).values()
        digests = {record.id: record.digest for page in pages for record in page.records}
        for draft in row.drafts:
            if draft.id not in digests:
                return False
            if row.stops and digests[draft.id] != draft.digest:
                return True
        return True

    def of(self, nonce: bytes) -> Sent:
        return self.sent[number_of(nonce)]


def number_of(nonce: bytes) -> int:
    return int.from_bytes(nonce[:NUMBER_BYTES], "big")
