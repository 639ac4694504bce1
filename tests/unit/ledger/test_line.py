"""Waiting in line and leading, on memory and by a clock that only naps move."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import pytest

from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState, in_turn
from millrace.ledger.adapters.memory_room import MemoryBoard, MemoryRoom
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.application.lead import Lead
from millrace.ledger.application.wait_in_line import LOOK_MS, MOST_BYTES, PATIENCE_MS, ROOM_FULL, WaitInLine
from millrace.ledger.domain.canonical import digest
from millrace.ledger.domain.errors import LedgerBusy, Unavailable
from millrace.ledger.domain.metrics import Metric
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin, Page, Part, Record
from millrace.ledger.domain.waiting import Notice, Placing, Receipt, Waiting
from millrace.ledger.ports import Run

LEDGER = Ledger.of("sync", "default", "busy")
ORIGIN = Origin("me", "my-connection", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
NOW = 1_000_000


def draft(id_: str, content: bytes = b"{}") -> Draft:
    return Draft(id_, digest(content), content, ("p",))


def page(first: int, id_: str) -> Page:
    record = Record(id_, digest(b"{}"), b"{}", ("p",))
    return Page(first, (record,), NOW, Origin("other"), id_.encode())


@dataclass(slots=True)
class CountedLog(MemoryLog):
    reads: int = 0

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        self.reads += 1
        return MemoryLog.read(self, ledger, after, limit, through)


@dataclass(slots=True)
class CountedRoom(MemoryRoom):
    left: list[Waiting] = field(default_factory=list)

    def leave(self, ledger: Ledger, request: Waiting) -> None:
        self.left.append(request)
        MemoryRoom.leave(self, ledger, request)


@dataclass(slots=True)
class Hall:
    """One ledger's storage, and a clock. `while_napping` is called after each nap with the time."""

    log: CountedLog = field(default_factory=CountedLog)
    room: MemoryRoom = field(default_factory=CountedRoom)
    board: MemoryBoard = field(default_factory=MemoryBoard)
    claims: MemoryClaims = field(default_factory=MemoryClaims)
    state: MemoryState = field(default_factory=MemoryState)
    now_ms: int = NOW
    naps: int = 0
    while_napping: Callable[[], None] = lambda: None
    counted: dict[Metric, int] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=lambda: count(1))

    @property
    def left(self) -> Sequence[Waiting]:
        assert isinstance(self.room, CountedRoom)
        return self.room.left

    def hold(self, for_ms: int = 150, waiting: int = 0) -> None:
        """Somebody else leads."""
        self.board.notices[LEDGER.name] = Notice(b"leader", self.now_ms + for_ms, (), waiting)

    def nap(self, ms: int) -> None:
        self.naps += 1
        self.now_ms += ms
        self.while_napping()

    def lead(self) -> Lead:
        return Lead(
            room=self.room,
            board=self.board,
            log=self.log,
            state=self.state,
            together=in_turn,
            clock=lambda: self.now_ms,
            nonce=lambda: b"n%d" % next(self.numbers),
        )

    def commit(self, *, busy: bool = True) -> Commit:
        def clock() -> int:
            return self.now_ms

        def tell(_ledger: Ledger, counts: Mapping[Metric, int]) -> None:
            self.counted.update(counts)

        heads = Heads(clock)
        if busy:
            heads.note_busy(LEDGER)
        line = WaitInLine(
            room=self.room,
            board=self.board,
            lead=self.lead(),
            log=self.log,
            heads=heads,
            clock=clock,
            nap=self.nap,
            tell=tell,
        )
        return Commit(
            claims=self.claims,
            log=self.log,
            state=self.state,
            heads=heads,
            together=in_turn,
            clock=clock,
            nonce=lambda: b"n%d" % next(self.numbers),
            pause=lambda _attempt: None,
            line=line,
        )

    def leader_comes(self) -> None:
        """The one that leads does a round: one request of its own, and whoever waits."""
        other = self.commit()
        assert other.line is not None
        self.while_napping = lambda: None
        self.board.notices[LEDGER.name] = Notice()
        other(LEDGER, [draft("of-the-leader")], Origin("leader"))


def events(hall: Hall) -> list[tuple[int, str, Origin]]:
    pages = hall.log.pages.get(LEDGER.name, {})
    found = [event for first in sorted(pages) for event in pages[first].events()]
    return [(event.position, event.record.id, event.origin) for event in found]


def test_a_writer_that_lost_and_is_alone_leads_without_leaving_a_row() -> None:
    hall = Hall()
    commit = hall.commit(busy=False)
    commit.heads.remember(LEDGER, 0)
    hall.log.append(LEDGER, page(1, "first"))
    (outcome,) = commit(LEDGER, [draft("mine")], ORIGIN)
    assert (outcome.position, outcome.fresh) == (2, True)
    assert (hall.naps, list(hall.left)) == (0, [])
    assert hall.board.read(LEDGER).is_free(hall.now_ms)


def test_a_writer_that_never_lost_does_not_look_at_the_board() -> None:
    hall = Hall()
    hall.hold()
    (outcome,) = hall.commit(busy=False)(LEDGER, [draft("mine")], ORIGIN)
    assert (outcome.position, hall.naps) == (1, 0)


def test_a_writer_that_waits_learns_its_positions_from_a_receipt_without_reading_the_log() -> None:
    hall = Hall()
    hall.hold()
    commit = hall.commit()
    hall.while_napping = hall.leader_comes
    own_log = CountedLog(hall.log.pages)
    assert commit.line is not None
    mine = replace(commit, log=own_log, line=replace(commit.line, log=own_log))
    outcomes = mine(LEDGER, [draft("a"), draft("b")], ORIGIN)
    assert [(outcome.position, outcome.fresh, outcome.time_ms) for outcome in outcomes] == [
        (2, True, hall.now_ms),
        (3, True, hall.now_ms),
    ]
    assert (own_log.reads, hall.naps) == (0, 1)
    assert list(hall.room.look(LEDGER)) == []


def test_a_page_of_several_requests_keeps_each_ones_client_and_connection() -> None:
    """S9."""
    hall = Hall()
    hall.hold()
    commit = hall.commit()
    hall.while_napping = hall.leader_comes
    commit(LEDGER, [draft("a")], ORIGIN)
    assert len(hall.log.pages[LEDGER.name]) == 1
    assert events(hall) == [(1, "of-the-leader", Origin("leader")), (2, "a", ORIGIN)]


def test_a_duplicate_that_waited_is_told_where_the_event_is_and_that_it_is_not_fresh() -> None:
    hall = Hall()
    hall.hold()
    commit = hall.commit()
    hall.while_napping = hall.leader_comes
    (outcome,) = commit(LEDGER, [draft("of-the-leader")], ORIGIN)
    assert (outcome.position, outcome.fresh) == (1, False)


def test_a_conflict_stops_what_comes_after_it_also_in_a_leaders_page() -> None:
    hall = Hall()
    hall.hold()
    commit = hall.commit()
    hall.while_napping = hall.leader_comes
    asked = [draft("a"), draft("of-the-leader", b"other"), draft("b")]
    outcomes = commit(LEDGER, asked, ORIGIN, stop_at_conflict=True)
    assert [outcome.position for outcome in outcomes] == [2, None, None]
    assert [id_ for _, id_, _ in events(hall)] == ["of-the-leader", "a"]


def test_where_too_many_wait_a_writer_is_refused_at_once() -> None:
    hall = Hall()
    hall.hold(waiting=ROOM_FULL)
    with pytest.raises(LedgerBusy) as refused:
        hall.commit()(LEDGER, [draft("mine")], ORIGIN)
    assert (refused.value.status, refused.value.code, hall.naps) == (429, "rate_limited", 0)
    assert list(hall.left) == []
    assert hall.counted[Metric.COMMITS_GIVEN_UP] == 1


def test_a_writer_gives_up_when_it_has_waited_long_enough_and_takes_its_request_back() -> None:
    hall = Hall()
    hall.hold()
    hall.while_napping = hall.hold
    with pytest.raises(LedgerBusy):
        hall.commit()(LEDGER, [draft("mine")], ORIGIN)
    assert PATIENCE_MS < hall.now_ms - NOW < PATIENCE_MS + 200
    assert len(hall.left) == 1
    assert list(hall.room.look(LEDGER)) == []


def test_a_request_that_was_given_up_is_not_absorbed_after_its_end() -> None:
    hall = Hall()
    hall.hold()
    hall.while_napping = hall.hold
    with pytest.raises(LedgerBusy):
        hall.commit()(LEDGER, [draft("mine")], ORIGIN)
    row = hall.left[0]
    hall.room.leave(LEDGER, row)
    hall.now_ms = row.ends_ms
    hall.leader_comes()
    assert [id_ for _, id_, _ in events(hall)] == ["of-the-leader"]
    assert list(hall.room.look(LEDGER)) == []


def test_a_writer_leads_when_the_lease_of_a_dead_leader_has_ended() -> None:
    hall = Hall()
    hall.hold(for_ms=150)
    (outcome,) = hall.commit()(LEDGER, [draft("mine")], ORIGIN)
    assert outcome.position == 1
    assert 150 <= hall.now_ms - NOW < 300


def test_a_lease_that_a_wrong_clock_gave_is_not_waited_for() -> None:
    hall = Hall()
    hall.hold(for_ms=10**7)
    (outcome,) = hall.commit()(LEDGER, [draft("mine")], ORIGIN)
    assert (outcome.position, hall.naps) == (1, 0)


def test_a_large_request_does_not_lie_in_the_room_but_waits_to_lead() -> None:
    hall = Hall()
    hall.hold(for_ms=150)
    (outcome,) = hall.commit()(LEDGER, [draft("large", b"x" * MOST_BYTES)], ORIGIN)
    assert (outcome.position, list(hall.left)) == (1, [])
    assert hall.now_ms - NOW >= 150


def test_a_writer_that_hears_nothing_finds_its_event_in_the_log_itself() -> None:
    """The leader died between the page and the receipt."""
    hall = Hall()
    hall.hold()

    def leader_dies() -> None:
        hall.hold()
        (row,) = hall.room.look(LEDGER)
        record = Record("mine", digest(b"{}"), b"{}", ("p",))
        hall.log.append(LEDGER, Page(1, (record,), NOW, ORIGIN, b"page", parts=(Part(1, ORIGIN, row.nonce),)))

    hall.while_napping = leader_dies
    (outcome,) = hall.commit()(LEDGER, [draft("mine")], ORIGIN)
    assert (outcome.position, outcome.fresh, outcome.time_ms) == (1, True, NOW)
    assert LOOK_MS < hall.now_ms - NOW < LOOK_MS + 200


def test_a_request_that_lies_in_the_room_again_is_the_same_row() -> None:
    """A receipt counts drafts of the row; a row that changed under its nonce would be told other positions."""
    hall = Hall()
    hall.hold()

    def leader_takes_the_first() -> None:
        if hall.naps > 1:
            hall.board.notices[LEDGER.name] = Notice()
            return
        hall.hold()
        nonce = hall.left[0].nonce
        hall.log.append(LEDGER, replace(page(1, "a"), parts=(Part(1, ORIGIN, nonce),)))
        receipt = Receipt(1, NOW, {nonce: [Placing(0, 1, 1)]}, frozenset({nonce}))
        held = hall.board.notices[LEDGER.name]
        hall.board.notices[LEDGER.name] = replace(held, receipts=(receipt,))

    hall.while_napping = leader_takes_the_first
    outcomes = hall.commit()(LEDGER, [draft("a"), draft("b")], ORIGIN)
    assert [outcome.position for outcome in outcomes] == [1, 2]
    assert len(hall.left) == 2
    assert hall.left[0] == hall.left[1]


@dataclass(slots=True)
class MuteBoard(MemoryBoard):
    def post(self, _ledger: Ledger, _leader: bytes, _notice: Notice) -> bool:
        raise Unavailable("not posted")


@dataclass(slots=True)
class LockedRoom(CountedRoom):
    def clear(self, _ledger: Ledger, _nonces: Sequence[bytes]) -> None:
        raise Unavailable("not cleared")


def test_a_leader_that_can_neither_post_nor_clear_has_committed_all_the_same() -> None:
    hall = Hall(room=LockedRoom(), board=MuteBoard())
    hall.room.leave(LEDGER, Waiting(b"w", (draft("waits"),), 0, Origin("other"), False, NOW, NOW + 1_000))
    (outcome,) = hall.commit()(LEDGER, [draft("mine")], ORIGIN)
    assert outcome.position == 1
    assert [id_ for _, id_, _ in events(hall)] == ["mine", "waits"]


@dataclass(slots=True)
class DullBoard(MemoryBoard):
    failures: int = 3

    def read(self, ledger: Ledger) -> Notice:
        self.failures -= 1
        if self.failures >= 0:
            raise Unavailable("no answer")
        return MemoryBoard.read(self, ledger)


def test_a_board_that_does_not_answer_costs_a_writer_one_turn() -> None:
    hall = Hall(board=DullBoard())
    (outcome,) = hall.commit()(LEDGER, [draft("mine")], ORIGIN)
    assert (outcome.position, hall.naps) == (1, 3)


def test_the_leader_hands_over_to_the_one_that_has_waited_longest() -> None:
    hall = Hall()
    for number in range(3):
        row = Waiting(b"w%d" % number, (draft(f"e{number}"),), 0, Origin("other"), False, NOW - number, NOW + 1_000)
        hall.room.leave(LEDGER, row)
    lead = hall.lead()
    rounds: list[int] = []

    def nonce() -> bytes:
        rounds.append(len(rounds))
        late = Waiting(b"late%d" % len(rounds), (draft(f"late{len(rounds)}"),), 0, ORIGIN, False, NOW, NOW + 1_000)
        hall.room.leave(LEDGER, late)
        return b"page%d" % len(rounds)

    commit = hall.commit()
    assert commit.line is not None
    replace(commit, line=replace(commit.line, lead=replace(lead, nonce=nonce)))(LEDGER, [draft("mine")], ORIGIN)
    notice = hall.board.read(LEDGER)
    assert notice.leader == b"late%d" % len(rounds)
    assert notice.until_ms > hall.now_ms
    assert [id_ for _, id_, _ in events(hall)][:4] == ["mine", "e2", "e1", "e0"]
