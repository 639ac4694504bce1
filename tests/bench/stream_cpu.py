"""CPU of a poll and of an emission in memory, beside the least that must be done with the same bytes."""

from __future__ import annotations

import hashlib
import json
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from millrace.ledger.adapters.memory import MemoryLog, MemoryState, in_turn
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain import strict_json
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.names import BUCKET, Ledger
from millrace.ledger.domain.packing import pack, unpack
from millrace.ledger.domain.page import Draft, Page
from millrace.ledger.ports import Run
from millrace.ledger.wiring import new_id
from millrace.runtime.http import to_json
from millrace.runtime.requests import events_of
from millrace.streams.adapters.memory import MemoryRawValues, MemoryRows, MemoryRuntimes
from millrace.streams.adapters.sealing import AesSealer
from millrace.streams.application.announce import Announce
from millrace.streams.application.emit import Emit, Emitted
from millrace.streams.application.poll import Poll
from millrace.streams.domain.transition import undone
from tests.bench.cpu import MAX_BYTES, memory_commit
from tests.bench.events import IDENTITY
from tests.bench.rig import Clock, page_of
from tests.bench.stream_costs import PER_PAGE, POLLED
from tests.bench.stream_events import HASHED, NEGOTIATED, POLICY, RUNTIME, STREAM, stream_drafts, stream_events
from tests.bench.stream_hub import KEYS

REPETITIONS = 15
KIND = "realistic"


class StoredPages(MemoryLog):
    """One bucket's pages, found as an index finds them. Packed ones are unpacked at each read, as DynamoDB's are."""

    def __init__(self, drafts: Sequence[Draft], per_page: int, *, packed: bool) -> None:
        super().__init__()
        self.firsts = list(range(1, len(drafts) + 1, per_page))
        self.kept = [page_of(drafts[first - 1 : first - 1 + per_page], first) for first in self.firsts]
        self.packed = [pack(page.records) for page in self.kept] if packed else []

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        low, high = bisect_right(self.firsts, after), bisect_right(self.firsts, through or BUCKET)
        taken = range(low, high)[:limit]
        return Run([self._page(at) for at in taken], more=len(taken) < high - low)

    def holding(self, ledger: Ledger, position: int) -> Page | None:
        return self._page(bisect_left(self.firsts, position + 1) - 1)

    def _page(self, at: int) -> Page:
        return replace(self.kept[at], records=unpack(self.packed[at])) if self.packed else self.kept[at]


def poll_rows() -> list[dict[str, Any]]:
    return [_poll_row(per_page) for per_page in PER_PAGE]


def _poll_row(per_page: int) -> dict[str, Any]:
    floor, polling, unpacking = [], [], []
    for repetition in range(REPETITIONS):
        drafts = stream_drafts(KIND, BUCKET, repetition)
        took, answers = _drained(StoredPages(drafts, per_page, packed=False))
        polling.append(took)
        unpacking.append(_drained(StoredPages(drafts, per_page, packed=True))[0])
        floor.append(_cpu(json.loads, answers))
    return {
        "events a page": per_page,
        "floor: json.loads": round(min(floor), 2),
        "poll": round(min(polling), 2),
        "poll and unpack": round(min(unpacking), 2),
        "poll / floor": round(min(polling) / min(floor), 2),
        "poll and unpack / floor": round(min(unpacking) / min(floor), 2),
    }


def _drained(log: MemoryLog) -> tuple[float, list[str]]:
    """µs per event of the polls that read a whole bucket, and their answers."""
    state, clock = MemoryState(), Clock()
    marked = MemoryRuntimes(state, clock)
    poll = Poll(log, state, _negotiated(state), marked, KEYS, Heads(clock), in_turn, clock, new_id)
    poll = replace(poll, new_subscription=lambda: "0" * 16)
    cursor: str | None = None
    answers: list[str] = []
    started = time.process_time()
    while len(answers) * POLLED < BUCKET:
        batch = poll(IDENTITY, RUNTIME, STREAM, cursor, POLLED)
        cursor = batch.next_cursor
        rest = to_json({"next_cursor": cursor, "dropped_count": batch.dropped_count})
        answers.append(f'{{"events":[{b",".join(batch.events).decode()}],{rest[1:]}')
    took = (time.process_time() - started) / BUCKET * 1e6
    assert sum(len(json.loads(answer)["events"]) for answer in answers) == BUCKET
    return took, answers


def emit_rows() -> list[dict[str, Any]]:
    return [_emit_row(size) for size in (1, 25, 100)]


def _emit_row(size: int) -> dict[str, Any]:
    floor, emitting = [], []
    for repetition in range(REPETITIONS):
        events = stream_events(KIND, BUCKET, repetition)
        bodies = [json.dumps({"events": events[at : at + size]}).encode() for at in range(0, BUCKET, size)]
        floor.append(_cpu(_floor, bodies))
        emitting.append(_cpu(_emitting(), bodies))
    return {
        "batch": size,
        "floor": round(min(floor), 1),
        "emit": round(min(emitting), 1),
        "emit / floor": round(min(emitting) / min(floor), 2),
    }


def _floor(body: bytes) -> None:
    """Parse, bring into canonical form, hash."""
    for event in json.loads(body)["events"]:
        hashlib.sha256(canonical(event)).digest()


def _emitting() -> Callable[[bytes], str]:
    """What the function does with a body: strict parsing, checks, privacy, commit, the JSON answer."""
    state, commit = MemoryState(), memory_commit(MemoryLog())
    announce = Announce(MemoryRows(), commit, new_id, lambda attempt: None, undone)
    emit = Emit(
        commit,
        announce,
        _negotiated(state),
        MemoryRawValues(),
        AesSealer(KEYS),
        POLICY,
        lambda _: HASHED,
        in_turn,
        Clock(),
    )

    def one(body: bytes) -> str:
        sent, _ = events_of(strict_json.parse(body, MAX_BYTES))
        results = [result for result in emit(IDENTITY, RUNTIME, STREAM, sent) if isinstance(result, Emitted)]
        assert len(results) == len(sent)
        return to_json(
            {"results": [{"event_id": r.event_id, "seq_no": r.position, "deduped": r.deduped} for r in results]}
        )

    return one


def _negotiated(state: MemoryState) -> MemoryRuntimes:
    runtimes = MemoryRuntimes(state, lambda: 0)
    runtimes.negotiate(IDENTITY.tenant, RUNTIME, IDENTITY.client_id, NEGOTIATED)
    return runtimes


def _cpu(work: Callable[[Any], object], bodies: Sequence[Any]) -> float:
    started = time.process_time()
    for body in bodies:
        work(body)
    return (time.process_time() - started) / BUCKET * 1e6
