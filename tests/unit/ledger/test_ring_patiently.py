from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from millrace.ledger.adapters.doorbell import SqsDoorbell
from millrace.ledger.adapters.memory import MemoryDoorbell
from millrace.ledger.application.ring_patiently import MARGIN_MS, OFTEN, PatientDoorbell
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger

A, B = Ledger.of("sync", "t", "a"), Ledger.of("sync", "t", "b")
DELAY_MS = 60_000


@dataclass
class Ringing:
    now_ms: int = 10**12
    later: MemoryDoorbell = field(default_factory=MemoryDoorbell)
    at_once: MemoryDoorbell = field(default_factory=MemoryDoorbell)
    delay_ms: int = DELAY_MS

    def bell(self) -> PatientDoorbell:
        return PatientDoorbell(self.later, self.at_once, self.delay_ms, lambda: self.now_ms)


def test_a_ledger_with_one_event_a_second_is_rung_for_once_in_its_window() -> None:
    world = Ringing()
    bell = world.bell()
    for _ in range(600):
        bell.ring([A])
        world.now_ms += 1_000
    rings = -(-600_000 // (DELAY_MS - MARGIN_MS))
    assert (world.later.rung, world.at_once.rung) == ([A] * rings, [])


def test_every_page_is_committed_before_a_ring_for_it_arrives() -> None:
    """Whatever the rhythm: at each moment of asking, a ring is on its way that arrives later."""
    for step_ms in (1, 700, 4_999, 30_000, 54_999, 55_000, 59_999, 61_000):
        world = Ringing()
        bell, arrivals = world.bell(), list[int]()
        for _ in range(50):
            before = len(world.later.rung)
            bell.ring([A])
            arrivals += [world.now_ms + DELAY_MS] * (len(world.later.rung) - before)
            assert arrivals[-1] >= world.now_ms + MARGIN_MS, step_ms
            world.now_ms += step_ms


def test_a_busy_ledger_is_rung_for_at_once_and_again_and_again() -> None:
    world = Ringing()
    bell = world.bell()
    for _ in range(2 * OFTEN + 1):
        bell.ring([A])
        world.now_ms += 10
    assert (world.later.rung, world.at_once.rung) == ([A], [A, A])


def test_ledgers_do_not_wait_for_each_other() -> None:
    world = Ringing()
    bell = world.bell()
    bell.ring([A])
    bell.ring([A, B])
    assert world.later.rung == [A, B]


def test_a_process_that_has_not_rung_itself_relies_on_nobody() -> None:
    world = Ringing()
    world.bell().ring([A])
    world.bell().ring([A])
    assert world.later.rung == [A, A]


def test_a_ring_that_the_queue_did_not_take_is_rung_again() -> None:
    class Failing(MemoryDoorbell):
        def ring(self, ledgers: Iterable[Ledger]) -> None:
            raise Unavailable("no")

    world = Ringing()
    bell = PatientDoorbell(Failing(), world.at_once, DELAY_MS, lambda: world.now_ms)
    for _ in range(2):
        with pytest.raises(Unavailable):
            bell.ring([A])


def test_without_a_delay_every_event_rings() -> None:
    world = Ringing(delay_ms=0)
    bell = world.bell()
    for _ in range(3):
        bell.ring([A])
    assert world.later.rung == [A, A, A]


@dataclass
class Queue:
    sent: list[dict[str, Any]] = field(default_factory=list)

    def send_message_batch(self, QueueUrl: str, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.sent += Entries
        return {}


def test_the_queue_is_told_how_long_to_wait() -> None:
    queue: Any = Queue()
    SqsDoorbell(queue, "url", 60).ring([A])
    SqsDoorbell(queue, "url").ring([B])
    assert [entry.get("DelaySeconds") for entry in queue.sent] == [60, None]
