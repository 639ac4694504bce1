"""The time index (R6): a page by the index is the page that reading the whole log gives, whatever came when."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.ledger.adapters.memory import MemoryLog, MemoryState, in_turn
from millrace.ledger.application.heads import Heads
from millrace.ledger.application.prune import Prune
from millrace.ledger.domain import names
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.instants import utc_text
from millrace.ledger.domain.names import Ledger, bucket_end, realtime_ledger
from millrace.ledger.domain.page import Origin, Page, Record
from millrace.ledger.ports import Run
from millrace.live.application.ring_full_buckets import BucketState
from millrace.realtime.adapters.memory import MemoryTimes
from millrace.realtime.application import order_in_time
from millrace.realtime.application.index_times import IndexTimes
from millrace.realtime.application.order_in_time import FoundInTime, OrderInTime
from millrace.realtime.application.read_session import ReadSession
from millrace.realtime.application.rebuild_times import RebuildTimes
from millrace.realtime.domain import time_index
from millrace.realtime.domain.time_index import FirstHits, TimeHit, reach, width_of
from millrace.realtime.domain.time_order import Place, place_of
from millrace.realtime.ports import TimeRows

SESSION = realtime_ledger("t", "s1")
SECOND = 1_000_000_000
NEVER = 10**9


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets and rows so small that a few events are many of them."""
    monkeypatch.setattr(names, "BUCKET", 8)
    monkeypatch.setattr(time_index, "ROW_HITS", 3)
    monkeypatch.setattr(time_index, "LATE_HITS", 2)
    monkeypatch.setattr(order_in_time, "ROW_HITS", 3)
    monkeypatch.setattr(order_in_time, "PAGE_BYTES", 2_000)


@dataclass
class Hub:
    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)
    times: MemoryTimes = field(default_factory=MemoryTimes)
    head: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)

    def publish(self, instants: Sequence[int], size: Callable[[], int] = lambda: 10) -> None:
        """A page of events with these times, cut where a bucket ends."""
        rest = list(instants)
        while rest:
            room = bucket_end(self.head + 1) - self.head
            records = []
            for at in rest[:room]:
                id_ = f"e{random.Random(len(self.events)).randrange(10**6):06}-{len(self.events)}"
                event = {"eventId": id_, "ts": utc_text(at), "payload": "x" * size()}
                self.events.append(event)
                records.append(Record(id_, b"", json.dumps(event).encode()))
            self.log.append(SESSION, Page(self.head + 1, tuple(records), 0, Origin("me"), b"n"))
            self.head += len(records)
            rest = rest[room:]

    def reader(self) -> ReadSession:
        return ReadSession(self.log, self.state, Heads(lambda: 0), in_turn)

    def indexer(self, may_go_on: Callable[[], bool] = lambda: True) -> IndexTimes:
        return IndexTimes(self.log, self.state, self.times, may_go_on)

    def page(self, at: Place | None, limit: int, *, whole: bool = False) -> FoundInTime:
        return OrderInTime(self.reader(), self.times, NEVER if whole else 0)(SESSION, at, limit)

    def both(self, at: Place | None, limit: int) -> FoundInTime:
        """By the index, and the same by the log alone."""
        by_index, by_log = self.page(at, limit), self.page(at, limit, whole=True)
        assert [event["eventId"] for event in by_index.events] == [event["eventId"] for event in by_log.events]
        assert by_index == by_log
        return by_index

    def read_on(self, limit: int) -> list[str]:
        """All of it, page after page."""
        page, seen = self.both(None, limit), list[str]()
        while True:
            seen += [event["eventId"] for event in page.events]
            if not page.has_more:
                return seen
            page = self.both(place_of(page.events[-1]), limit)


STEADY, NOISY, OUTLIERS, SAME, ANY, BACKWARD = range(6)


def instants(rng: random.Random, kind: int, start: int, count: int) -> list[int]:
    base = [(start + n) * SECOND for n in range(count)]
    if kind == NOISY:
        return [at + rng.randrange(-3, 4) * SECOND for at in base]
    if kind == OUTLIERS:
        return [at - rng.choice([0, 0, 0, 0, 3_600, 10**6]) * SECOND for at in base]
    if kind == SAME:
        return [SECOND] * count
    if kind == ANY:
        return [rng.randrange(-(10**9), 10**9) * rng.choice([1, 1_000, SECOND]) for _ in base]
    return base[::-1] if kind == BACKWARD else base


def filled(seed: int) -> tuple[Hub, random.Random]:
    hub, rng = Hub(), random.Random(seed)
    for _ in range(rng.randrange(1, 30)):
        times = instants(rng, rng.choice([STEADY, STEADY, NOISY, OUTLIERS, SAME, ANY, BACKWARD]), hub.head, 5)
        hub.publish(times[: rng.randrange(1, 6)], lambda: rng.choice([10, 10, 300, 2_500]))
        if rng.random() < 0.2:
            hub.indexer(lambda: rng.random() < 0.7)(SESSION)
    return hub, rng


@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_r6_a_page_by_the_index_is_the_page_by_the_log(seed: int) -> None:
    hub, rng = filled(seed)
    limit = rng.choice([1, 2, 3, 7, 50])
    assert hub.read_on(limit) == [e["eventId"] for e in sorted(hub.events, key=place_of)]
    for _ in range(10):
        at = place_of(rng.choice(hub.events))
        hub.both(rng.choice([at, (at[0] + rng.randrange(-5, 5), at[1]), (at[0], at[1][:3])]), limit)


@settings(max_examples=100)
@given(st.integers(0, 10**9))
def test_r6_what_is_pruned_is_not_in_a_page_by_the_index(seed: int) -> None:
    hub, rng = filled(seed)
    hub.indexer()(SESSION)
    for _ in range(4):
        Prune(hub.log, hub.state, ())(SESSION, rng.randrange(hub.head + 1))
        if rng.random() < 0.3:
            RebuildTimes(hub.indexer())(SESSION)
        hub.publish(instants(rng, rng.randrange(6), hub.head, 5))
        hub.indexer(lambda: rng.random() < 0.7)(SESSION)
        hub.read_on(rng.choice([2, 7]))
        hub.both(place_of(rng.choice(hub.events)), 3)


@settings(max_examples=60)
@given(st.integers(0, 10**9))
def test_r6_pages_that_a_dying_pruner_emptied_are_passed_over_and_named(seed: int) -> None:
    """Pages are emptied before the floor is raised."""
    hub, rng = filled(seed)
    hub.indexer()(SESSION)
    Prune(hub.log, hub.state, ())(SESSION, gone := rng.randrange(hub.head + 1))
    hub.state.floors.clear()
    page, seen = hub.page(None, 3), list[str]()
    if any(place_of(one) == min(map(place_of, hub.events)) for one in hub.events[:gone]):
        assert page.gone == gone, "who meets an emptied place says up to where they are"
    while page.events:
        seen += [event["eventId"] for event in page.events]
        page = hub.page(place_of(page.events[-1]), 3)
    assert seen == [event["eventId"] for event in sorted(hub.events[gone:], key=place_of)]


class DiesError(Exception):
    pass


@dataclass
class Dying:
    """A time index whose writer dies after so many rows or notes. What it wrote stays."""

    times: MemoryTimes
    left: int

    def write(self, session: Ledger, rows: Sequence[Any], note: Any) -> None:
        for row in rows:
            self._live()
            stored = self.times.noted.get(session.name, {}).get(note.bucket)
            self.times.write(session, [row], note)
            if stored is None:
                del self.times.noted[session.name][note.bucket]
            else:
                self.times.noted[session.name][note.bucket] = stored
        self._live()
        self.times.write(session, [], note)

    def _live(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise DiesError

    def __getattr__(self, name: str) -> Any:
        return getattr(self.times, name)


@settings(max_examples=60)
@given(st.integers(0, 10**9))
def test_an_indexer_may_die_anywhere_and_be_overtaken(seed: int) -> None:
    hub, rng = filled(seed)
    for _ in range(12):
        times: Any = Dying(hub.times, rng.randrange(12))
        indexer = IndexTimes(hub.log, hub.state, times, lambda: True)
        with suppress(DiesError):
            (RebuildTimes(indexer) if rng.random() < 0.3 else indexer)(SESSION)
        hub.both(place_of(rng.choice(hub.events)), 4)
    hub.read_on(5)


def test_the_cost_of_a_page_follows_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the log, the tail above the index and the page's own events are read; of the index, a few rows."""
    hub = Hub()
    hub.publish([n * SECOND for n in range(8_003)])
    hub.indexer()(SESSION)
    read, rows = list[int](), list[int]()
    log_read, times_read = hub.log.read, hub.times.read

    def reading(_log: MemoryLog, *asked: Any, **how: Any) -> Run:
        read.append(len((found := log_read(*asked, **how)).pages))
        return found

    def looking(_times: MemoryTimes, *asked: Any) -> TimeRows:
        rows.append(len((found := times_read(*asked)).rows))
        return found

    monkeypatch.setattr(MemoryLog, "read", reading)
    monkeypatch.setattr(MemoryTimes, "read", looking)
    page = hub.page((4_000 * SECOND, "z"), 10)
    assert [event["ts"] for event in page.events] == [utc_text((4_001 + n) * SECOND) for n in range(10)]
    assert sum(read) < 10, "pages of the log, of eight events each"
    assert sum(rows) < 15, "rows of three events each"


def test_rows_that_are_all_below_the_floor_are_removed() -> None:
    hub = Hub()
    hub.publish([n * SECOND for n in range(80)])
    hub.indexer()(SESSION)
    before = sum(map(len, hub.times.rows.values()))
    Prune(hub.log, hub.state, ())(SESSION, 60)
    hub.publish([n * SECOND for n in range(80, 88)])
    assert hub.indexer()(SESSION)
    left = [row for rows in hub.times.rows.values() for row in rows.values()]
    assert len(left) < before / 2
    assert min(row.top for row in left) > 60


def test_a_short_session_and_one_without_an_index_are_read_from_the_log() -> None:
    hub = Hub()
    hub.publish([n * SECOND for n in range(30)])
    assert len(hub.page(None, 15).events) == 15, "there is no index yet"
    hub.indexer()(SESSION)
    hub.times.rows.clear()
    assert hub.page(None, 15).events[0]["sequence"] != 1, "the index is asked"
    assert len(OrderInTime(hub.reader(), hub.times)(SESSION, None, 15).events) == 15, "not for so few events"


def test_a_page_that_storage_does_not_give_is_no_missing_event(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub()
    hub.publish([n * SECOND for n in range(40)])
    hub.indexer()(SESSION)
    monkeypatch.setattr(MemoryLog, "get", lambda *_: {})
    with pytest.raises(Unavailable):
        hub.page(None, 3)


@given(st.integers(0, 10**22))
def test_a_row_reaches_no_further_back_than_its_width_says(length: int) -> None:
    width = width_of(length)
    assert length <= reach(width)
    assert width == 0 or length > reach(width - 1)


def test_first_hits_keep_the_first_ones_once() -> None:
    hits = FirstHits((5, "a"), 2)
    for instant, id_ in ((9, "z"), (5, "a"), (7, "b"), (7, "b"), (4, "x"), (6, "c"), (9, "z")):
        hits.add(TimeHit((instant, id_), instant, 1, 1))
    assert [hit.place for hit in hits.kept] == [(6, "c"), (7, "b")]
    assert hits.own == 5


@dataclass
class Bell:
    rung: list[str] = field(default_factory=list)
    fails: bool = False

    def ring(self, ledgers: Iterator[Ledger]) -> None:
        self.rung += [ledger.name for ledger in ledgers]
        if self.fails:
            raise Unavailable("down")


def test_the_fan_out_rings_when_a_bucket_of_a_session_is_full_and_then_only() -> None:
    bell: Any = Bell()
    state = BucketState(MemoryState(), bell)
    other = Ledger.of("sync", "t", "p")
    for ledger in (SESSION, other):
        for expected, to in ((0, 7), (7, 8), (8, 15), (15, 17)):
            assert state.move_cursor(ledger, "fan_out", expected, to)
    assert not state.move_cursor(SESSION, "fan_out", 0, 99), "it stands elsewhere"
    assert bell.rung == [SESSION.name] * 2
    bell.fails = True
    assert state.move_cursor(SESSION, "fan_out", 17, 25), "what was sent was sent, whether the queue takes rings or not"
