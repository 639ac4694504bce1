"""T7: a snapshot of any number of retained events is exact, and what its senders hold at once does not grow with it."""

from __future__ import annotations

import os
import tracemalloc
from typing import Any

from tests.unit.live.test_subscribe_stream import C, places
from tests.unit.live.test_subscribe_stream import filled as stream_with

EVENTS = int(os.environ.get("MILLRACE_SNAPSHOT_EVENTS", "6000"))
A_POST_MS = 8
MOST_HELD = 6_000_000
"""Bytes: a few stretches of the log."""


def test_t7_a_long_snapshot_is_exact_and_takes_bounded_memory() -> None:
    live = stream_with(EVENTS)
    came: list[tuple[str, int]] = []

    def take(_frame: dict[str, Any]) -> None:
        live.hub.clock.ms += A_POST_MS
        came.extend(places([frame for frame in live.frames() if frame["type"] == "event"]))
        assert not live.wire.sent.get(C)

    live.wire.after = take
    tracemalloc.start()
    try:
        live.subscribe()
        slices = live.go_on_to_the_end()
        held = tracemalloc.get_traced_memory()[1] - len(came) * 200  # what this test itself keeps
    finally:
        tracemalloc.stop()
    assert came == [("snapshot", number) for number in range(1, EVENTS + 1)]
    assert slices == (EVENTS - 1) // 1_500, "12 seconds of posts are a slice"
    assert held < MOST_HELD
    live.emit("another")
    live.fan_out()
    assert came[-1] == ("live", EVENTS + 1)
