"""R6: replay by watermark and by consumer of a session of any length is exact, and memory does not grow with it."""

from __future__ import annotations

import json
import os
import random
import tracemalloc
from collections.abc import Iterator

import pytest

from millrace.ledger.adapters.memory import MemoryLog, MemoryState, in_turn
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.instants import instant, utc_text
from millrace.ledger.domain.names import bucket_end, realtime_ledger
from millrace.ledger.domain.page import Origin, Page, Record
from millrace.realtime.adapters.memory import MemoryRealtime, MemoryTimes
from millrace.realtime.application.index_times import IndexTimes
from millrace.realtime.application.order_in_time import OrderInTime
from millrace.realtime.application.read_session import ReadSession
from millrace.realtime.application.replay import Replay, ReplayRequest

EVENTS = int(os.environ.get("MILLRACE_REPLAY_EVENTS", "6000"))
SESSION = realtime_ledger("t", "s1")
ME = Identity("me", "t", frozenset(), ("session:*",), frozenset({"consumer"}), "t")
MOST_HELD = 16_000_000
"""Bytes: a page of 500, the tail above the index, and a few rows of it."""


def times(rng: random.Random) -> Iterator[int]:
    """A call with pauses, clocks that differ, what a phone sends an hour late, and many events of one instant."""
    now = 1_771_236_000 * 10**9
    for number in range(EVENTS):
        now += rng.choice((0, 0, 10**6, 10**8, 10**9)) + (3_600 * 10**9 if number % 5_000 == 4_999 else 0)
        late = rng.choice((0, 0, 0, rng.randrange(10**9))) + (3_600 * 10**9 if rng.random() < 0.002 else 0)
        yield now - late


@pytest.fixture(scope="module")
def log() -> MemoryLog:
    log, rng, at = MemoryLog(), random.Random(17), 1
    rest = list(times(rng))
    while rest:
        size = min(rng.choice((1, 25, 100)), bucket_end(at) - at + 1)
        records = []
        for number, moment in enumerate(rest[:size], start=at):
            id_ = f"{rng.getrandbits(64):016x}-{number}"
            event = {"eventId": id_, "ts": utc_text(moment), "payload": {"callId": "c" * 100}}
            records.append(Record(id_, b"", json.dumps(event).encode()))
        log.append(SESSION, Page(at, tuple(records), 0, Origin("me"), b"n"))
        at, rest = at + len(records), rest[size:]
    return log


def test_r6_a_long_session_is_read_in_time_order_with_bounded_memory(log: MemoryLog) -> None:
    state, index = MemoryState(), MemoryTimes()
    assert IndexTimes(log, state, index, lambda: True)(SESSION)
    read = ReadSession(log, state, Heads(lambda: 0), in_turn)
    kept = MemoryRealtime(state)
    replay = Replay(read, OrderInTime(read, index), kept)
    every = [json.loads(e.record.body or b"") for page in log.pages[SESSION.name].values() for e in page.events()]
    wanted = [one["eventId"] for one in sorted(every, key=lambda one: (instant(one["ts"]), one["eventId"]))]
    del every
    at, seen = 0, True
    tracemalloc.start()
    try:
        page = replay(ME, "s1", ReplayRequest(limit=500))
        while seen:
            got = [event["eventId"] for event in page.events]
            assert got == wanted[at : at + 500]
            at, seen = at + len(got), page.has_more
            if at % 1_000 and page.watermark:
                kept.move(SESSION, "ui", page.watermark)
                page = replay(ME, "s1", ReplayRequest(consumer="ui", limit=500))
            else:
                page = replay(ME, "s1", ReplayRequest(watermark=page.watermark, limit=500))
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert at == EVENTS
    assert page.events == []
    assert held < MOST_HELD
