"""CPU per event of a publish in memory, for each type of realtime event, beside parsing the same bytes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from millrace.ledger.adapters.memory import MemoryLog, in_turn
from millrace.ledger.domain import strict_json
from millrace.realtime.application.publish import Publication, Publish
from millrace.realtime.doors.answers import published, to_json
from millrace.realtime.doors.registry import TYPES
from millrace.realtime.doors.validate import Valid, validate
from millrace.runtime.requests import events_of
from tests.bench.cpu import MAX_BYTES, memory_commit
from tests.bench.events import IDENTITY
from tests.bench.session_events import of_type

EVENTS = 500
BATCH = 25
REPETITIONS = 7


def rows() -> list[dict[str, Any]]:
    return [_row(name) for name in TYPES]


def _row(name: str) -> dict[str, Any]:
    floor, checking, alone, batched = [], [], [], []
    sizes: set[int] = set()
    for repetition in range(REPETITIONS):
        events = of_type(name, EVENTS, repetition)
        bodies = [json.dumps(event).encode() for event in events]
        batches = [json.dumps({"events": events[at : at + BATCH]}).encode() for at in range(0, EVENTS, BATCH)]
        sizes |= set(map(len, bodies))
        floor.append(_cpu(json.loads, bodies))
        checking.append(_cpu(validate, events))
        alone.append(_cpu(_publishing(), bodies))
        batched.append(_cpu(_publishing(), batches))
    return {
        "type": name,
        "bytes": max(sizes),
        "floor: json.loads": round(min(floor), 1),
        "validate": round(min(checking), 1),
        "publish": round(min(alone), 1),
        f"publish, {BATCH} at once": round(min(batched), 1),
        "validate / floor": round(min(checking) / min(floor), 1),
        "publish / floor": round(min(alone) / min(floor), 1),
        f"publish, {BATCH} at once / floor": round(min(batched) / min(floor), 1),
    }


def _cpu(work: Callable[[Any], object], bodies: Sequence[Any]) -> float:
    started = time.process_time()
    for body in bodies:
        work(body)
    return (time.process_time() - started) / EVENTS * 1e6


def _publishing() -> Callable[[bytes], str]:
    """What the function does with a body: strict parsing, validation, commit, the JSON answer."""
    publish = Publish(memory_commit(MemoryLog()), in_turn)

    def one(body: bytes) -> str:
        events, _ = events_of(strict_json.parse(body, MAX_BYTES))
        checked = [validate(event) for event in events]
        valid = [Publication(one.event, one.instant) for one in checked if isinstance(one, Valid)]
        answers = [published(result) for result in publish(IDENTITY, valid)]
        assert len(answers) == len(events)
        return to_json([answer for _, answer in answers])

    return one
