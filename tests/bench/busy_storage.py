"""Storage for the bench of a busy ledger: the memory adapters, slow as DynamoDB is, and its units counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from millrace.ledger.adapters.dynamodb import log as log_items
from millrace.ledger.adapters.dynamodb import room as room_items
from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState
from millrace.ledger.adapters.memory_room import MemoryBoard, MemoryRoom
from millrace.ledger.domain import receipts
from millrace.ledger.domain.names import Ledger, bucket_end
from millrace.ledger.domain.page import Page
from millrace.ledger.domain.waiting import Notice, Waiting
from millrace.ledger.ports import Claimed, Marks, Run
from tests.bench.sizes import READ_UNIT, item_size, read_units, write_units
from tests.bench.virtual_time import VirtualTime

WRITE_MS, READ_MS = 4.5, 3.5
MS_PER_KB = 0.04
"""What a larger item adds."""
BOARD_BYTES = 80


@dataclass(slots=True)
class Units:
    write: float = 0
    read: float = 0
    puts: int = 0
    lost: int = 0


class SortedLog(MemoryLog):
    """Pages come in order, so that a read need not sort them; a bench reads a long log very often."""

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        pages = self.pages.get(ledger.name, {})
        last = bucket_end(after + 1) if through is None else min(through, bucket_end(after + 1))
        found: list[Page] = []
        page = pages.get(after + 1)
        while page is not None and page.first <= last:
            found.append(page)
            page = pages.get(page.end + 1)
        taken = found if limit is None else found[:limit]
        return Run(taken, more=len(taken) < len(found))


@dataclass(slots=True)
class Tables:
    """What is durable, and what it cost."""

    claims: MemoryClaims = field(default_factory=MemoryClaims)
    log: SortedLog = field(default_factory=SortedLog)
    state: MemoryState = field(default_factory=MemoryState)
    room: MemoryRoom = field(default_factory=MemoryRoom)
    board: MemoryBoard = field(default_factory=MemoryBoard)
    units: Units = field(default_factory=Units)


@dataclass(slots=True)
class SlowClaims(MemoryClaims):
    time: VirtualTime = field(kw_only=True)
    tables: Tables = field(kw_only=True)

    def create(self, ledger: Ledger, ids: Sequence[str], seen: int) -> Claimed:
        self.tables.units.write += len(ids)
        return self.time.call(WRITE_MS, lambda: self.tables.claims.create(ledger, ids, seen))


@dataclass(slots=True)
class SlowLog:
    time: VirtualTime
    tables: Tables

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        size = item_size(log_items._item(ledger, page))
        winner = self.time.call(WRITE_MS + MS_PER_KB * size / 1024, lambda: self.tables.log.append(ledger, page))
        self.tables.units.puts += 1
        self.tables.units.lost += winner is not None
        billed = size if winner is None else max(size, item_size(log_items._item(ledger, winner)))
        self.tables.units.write += write_units(billed)
        return winner

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        run = self.time.call(READ_MS, lambda: self.tables.log.read(ledger, after, limit, through))
        self._bill(ledger, run.pages)
        return run

    def holding(self, ledger: Ledger, position: int) -> Page | None:
        page = self.time.call(READ_MS, lambda: self.tables.log.holding(ledger, position))
        self._bill(ledger, [page] if page else [])
        return page

    def _bill(self, ledger: Ledger, pages: Sequence[Page]) -> None:
        self.tables.units.read += read_units(sum(item_size(log_items._item(ledger, page)) for page in pages))


@dataclass(slots=True)
class SlowState:
    time: VirtualTime
    tables: Tables

    def register(self, ledger: Ledger) -> None:
        self.tables.units.write += 1
        self.time.call(WRITE_MS, lambda: self.tables.state.register(ledger))

    def marks(self, ledger: Ledger) -> Marks:
        self.tables.units.read += 1
        return self.time.call(READ_MS, lambda: self.tables.state.marks(ledger))


@dataclass(slots=True)
class SlowRoom:
    time: VirtualTime
    tables: Tables

    def leave(self, ledger: Ledger, request: Waiting) -> None:
        self.tables.units.write += write_units(self._size(ledger, request))
        self.time.call(WRITE_MS, lambda: self.tables.room.leave(ledger, request))

    def look(self, ledger: Ledger) -> Sequence[Waiting]:
        rows = self.time.call(READ_MS, lambda: self.tables.room.look(ledger))
        size = sum(self._size(ledger, row) for row in rows)
        self.tables.units.read += max(room_items.SHARDS, size / READ_UNIT)
        return rows

    def clear(self, ledger: Ledger, nonces: Sequence[bytes]) -> None:
        rows = self.tables.room.rows.get(ledger.name, {})
        self.tables.units.write += sum(
            write_units(self._size(ledger, rows[nonce])) if nonce in rows else 1 for nonce in nonces
        )
        self.time.call(WRITE_MS, lambda: self.tables.room.clear(ledger, nonces))

    def _size(self, ledger: Ledger, request: Waiting) -> int:
        row = room_items._row(ledger, request)
        return item_size({name: value for name, value in row.items() if name != "s"}) + 2


@dataclass(slots=True)
class SlowBoard:
    time: VirtualTime
    tables: Tables

    def read(self, ledger: Ledger) -> Notice:
        notice = self.time.call(READ_MS, lambda: self.tables.board.read(ledger))
        self.tables.units.read += read_units(self._size(notice)) / 2
        return notice

    def take(self, ledger: Ledger, leader: bytes, now_ms: int, until_ms: int) -> bool:
        self._bill(ledger, None)
        return self.time.call(WRITE_MS, lambda: self.tables.board.take(ledger, leader, now_ms, until_ms))

    def post(self, ledger: Ledger, leader: bytes, notice: Notice) -> bool:
        self._bill(ledger, notice)
        return self.time.call(WRITE_MS, lambda: self.tables.board.post(ledger, leader, notice))

    def _bill(self, ledger: Ledger, notice: Notice | None) -> None:
        """The larger of what was there and what comes."""
        before = self._size(self.tables.board.notices.get(ledger.name, Notice()))
        self.tables.units.write += write_units(max(before, self._size(notice) if notice else 0))

    def _size(self, notice: Notice) -> int:
        return BOARD_BYTES + len(receipts.pack(notice.receipts))
