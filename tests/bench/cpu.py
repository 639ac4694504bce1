"""CPU per event of the submit path in memory, beside the least any hub must do with the same bytes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState, in_turn
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain import strict_json
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.packing import pack
from millrace.ledger.domain.page import Page
from millrace.sync.application.submit import Submit
from tests.bench.events import IDENTITY, KINDS_WITH_FLOATS, items
from tests.bench.report import Section, Table
from tests.bench.rig import Clock

SIZES = (1, 25, 100)
EVENTS = 1_000
REPETITIONS = 7
MAX_BYTES = 1024 * 1024


class PackingLog(MemoryLog):
    """Packs each page as the log in DynamoDB does, and keeps it in memory all the same."""

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        pack(page.records)
        return super().append(ledger, page)


def run() -> Section:
    rows = [_row(kind, size) for kind in KINDS_WITH_FLOATS for size in SIZES]
    return Section([Table("submit", f"CPU of a submit, µs per event, best of {REPETITIONS}", rows)])


def _row(kind: str, size: int) -> dict[str, Any]:
    floor, submit, packing = [], [], []
    for repetition in range(REPETITIONS):
        bodies = [
            json.dumps({"events": items(kind, size, repetition * EVENTS + number)}).encode()
            for number in range(EVENTS // size)
        ]
        floor.append(_cpu(_floor, bodies))
        submit.append(_cpu(_submitting(MemoryLog()), bodies))
        packing.append(_cpu(_submitting(PackingLog()), bodies))
    return {
        "payload": kind,
        "batch": size,
        "floor": round(min(floor), 1),
        "submit": round(min(submit), 1),
        "submit and pack": round(min(packing), 1),
        "submit / floor": round(min(submit) / min(floor), 2),
    }


def _cpu(work: Callable[[bytes], object], bodies: Sequence[bytes]) -> float:
    started = time.process_time()
    for body in bodies:
        work(body)
    return (time.process_time() - started) / EVENTS * 1e6


def _floor(body: bytes) -> None:
    """Parse, bring into canonical form, hash."""
    for item in json.loads(body)["events"]:
        hashlib.sha256(canonical(item["event"])).digest()


def memory_commit(log: MemoryLog) -> Commit:
    clock = Clock()
    return Commit(
        MemoryClaims(), log, MemoryState(), Heads(clock), in_turn, clock, lambda: bytes(12), lambda attempt: None
    )


def _submitting(log: MemoryLog) -> Callable[[bytes], str]:
    submit = Submit(memory_commit(log), Clock(), lambda *_: "open")

    def one(body: bytes) -> str:
        results = submit(IDENTITY, "demo", strict_json.parse(body, MAX_BYTES))
        return json.dumps({"results": results}, ensure_ascii=False, separators=(",", ":"))

    return one
