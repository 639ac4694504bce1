"""How the embedded stack reads queues and streams for functions: each for itself, and what is busy in batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from local import sources
from local.sources import BATCH_SECONDS, GAP_SECONDS, WINDOW_SECONDS, Bells, pause_of, read


def looks_at(times: list[float], found: Callable[[], bool]) -> Callable[[], bool]:
    def look() -> bool:
        times.append(time.monotonic())
        return found()

    return look


def test_one_bell_rings_for_every_reader() -> None:
    """Else a reader that takes its ring away from another lets it sleep on."""
    bell = threading.Event()
    bells = Bells(bell)
    readers = [bells.new() for _ in range(3)]
    threading.Thread(target=bells.pass_on, daemon=True).start()
    for _ in range(5):
        bell.set()
        assert all(reader.wait(5) for reader in readers)
        for reader in readers:
            reader.clear()


def test_a_lone_message_is_found_at_once_and_a_busy_source_is_read_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause is long, and nobody looks unless the bell rings: a busy machine changes nothing."""
    monkeypatch.setattr(sources, "LOOK_SECONDS", 60)
    pause, bell, times = 1.0, threading.Event(), list[float]()
    waiting = iter([False, True, True, False])
    reader = threading.Thread(
        target=read,
        args=(looks_at(times, lambda: next(waiting)), bell, pause, lambda: len(times) == 4),
        daemon=True,
    )
    reader.start()
    while not times:
        time.sleep(0.001)
    time.sleep(3 * GAP_SECONDS)
    rung = time.monotonic()
    bell.set()
    while len(times) < 4:
        bell.set()
        time.sleep(0.001)
    assert times[1] - rung < pause
    assert min(times[2] - times[1], times[3] - times[2]) >= pause * 0.99
    bell.set()
    reader.join(5)


def test_a_source_whose_reading_fails_is_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LOOK_SECONDS", 0.001)
    times = list[float]()

    def found() -> bool:
        raise RuntimeError("torn")

    read(looks_at(times, found), threading.Event(), until=lambda: len(times) == 3)
    assert len(times) == 3


def test_only_what_holds_several_messages_waits_for_more() -> None:
    assert pause_of({"BatchSize": 1}) == GAP_SECONDS
    assert pause_of({"BatchSize": 100, "MaximumBatchingWindowInSeconds": 0}) == BATCH_SECONDS
    assert pause_of({"BatchSize": 1000, "MaximumBatchingWindowInSeconds": 60}) == WINDOW_SECONDS
