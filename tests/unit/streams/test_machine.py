"""Streams under a state machine: emitting, polling, pruning, dying and restarting in any order (T3, T6, T8–T10).

MILLRACE_MACHINE_EXAMPLES=5000 makes it a soak.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from millrace.ledger.application import read_log
from millrace.ledger.domain import names as ledger_module
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event, Page
from millrace.streams.adapters.memory import MemoryRuntimes
from millrace.streams.application import poll as poll_module
from millrace.streams.application.poll import Poll, _Filling
from millrace.streams.domain.errors import BatchTooLarge
from millrace.streams.domain.gap import gap_event
from tests.unit.streams.machine import StreamsMachine

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("MILLRACE_MACHINE_EXAMPLES", "150"))
PLANTED_EXAMPLES = 2_000

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def _small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "BUCKET", 5)


def run(**how: Any) -> None:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    chosen = settings(stateful_step_count=40, deadline=None, suppress_health_check=slow, **how)
    run_state_machine_as_test(StreamsMachine, settings=chosen)


def test_every_answer_is_that_of_the_model() -> None:
    run(max_examples=EXAMPLES)


def pass_over_what_is_pruned(patch: pytest.MonkeyPatch) -> None:
    take = poll_module._take

    def skip(filling: _Filling, event: Event) -> bool:
        if event.record.body is None:
            filling.at = event.position
            return True
        return take(filling, event)

    patch.setattr(poll_module, "_take", skip)


def pass_over_a_page_that_cannot_be_read(patch: pytest.MonkeyPatch) -> None:
    def whatever(pages: Iterable[Page], _after: int) -> Iterable[Page]:
        return pages

    patch.setattr(read_log, "contiguous", whatever)


def go_on_at_the_floor(patch: pytest.MonkeyPatch) -> None:
    follow = Poll._next

    def reset(self: Poll, ledger: Ledger, place: Any, marks: Any, *rest: Any) -> _Filling:
        return follow(self, ledger, replace(place, position=max(place.position, marks.floor - 1)), marks, *rest)

    patch.setattr(Poll, "_next", reset)
    patch.setattr(Poll, "_check_place", lambda *_args, **_marked: None)


def trust_the_floor_of_a_dead_pruner(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Poll, "_retained_from", lambda _self, _ledger, floor: floor)


def degrade_every_subscription_of_the_stream(patch: pytest.MonkeyPatch) -> None:
    def is_marked(self: MemoryRuntimes, stream: Ledger, _subscription: str) -> bool:
        return any(name == stream.name for name, _ in self.marked)

    patch.setattr(MemoryRuntimes, "is_marked", is_marked)


def degrade_only_the_expired_cursor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryRuntimes, "is_marked", lambda *_args: False)


def tell_of_expiry_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryRuntimes, "is_marked", lambda *_args: False)
    patch.setattr(MemoryRuntimes, "mark", lambda *_args: True)


def count_the_gap_wrongly(patch: pytest.MonkeyPatch) -> None:
    def short(runtime_id: str, stream_id: str, expected: int, observed: int, now_ms: int) -> dict[str, Any]:
        return gap_event(runtime_id, stream_id, expected + 1, observed, now_ms)

    patch.setattr(poll_module, "gap_event", short)


def give_the_gap_beyond_max(patch: pytest.MonkeyPatch) -> None:
    start = Poll._from_floor

    def more(self: Poll, ledger: Ledger, floor: int, marks: Any, limits: Any, wanted: int) -> _Filling:
        return start(self, ledger, floor, marks, limits, wanted + (floor > 1))

    patch.setattr(Poll, "_from_floor", more)


def forget_the_commas(patch: pytest.MonkeyPatch) -> None:
    add = _Filling.add

    def lighter(self: _Filling, text: bytes, position: int) -> bool:
        added = add(self, text, position)
        self.size -= added and len(self.events) > 1
        return added

    patch.setattr(_Filling, "add", lighter)


def refuse_a_batch_that_only_has_to_be_shorter(patch: pytest.MonkeyPatch) -> None:
    add = _Filling.add

    def strict(self: _Filling, text: bytes, position: int) -> bool:
        if not add(self, text, position):
            raise BatchTooLarge("", seq_no=position, event_bytes=len(text), max_batch_bytes=0)
        return True

    patch.setattr(_Filling, "add", strict)


PLANTED = (
    pass_over_what_is_pruned,
    pass_over_a_page_that_cannot_be_read,
    go_on_at_the_floor,
    trust_the_floor_of_a_dead_pruner,
    degrade_every_subscription_of_the_stream,
    degrade_only_the_expired_cursor,
    tell_of_expiry_again,
    count_the_gap_wrongly,
    give_the_gap_beyond_max,
    forget_the_commas,
    refuse_a_batch_that_only_has_to_be_shorter,
)


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_the_machine_notices_a_poll_that_would(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    once = {"derandomize": True, "database": None, "report_multiple_bugs": False, "print_blob": False}
    with pytest.raises(AssertionError):
        run(max_examples=PLANTED_EXAMPLES, phases=[Phase.generate], **once)
