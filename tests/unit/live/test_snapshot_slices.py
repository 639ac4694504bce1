"""T7, R9: a snapshot of any length comes in slices, by one sender after the other, and goes live without a seam."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.ledger.domain.errors import Unavailable
from millrace.live.application.send_snapshot import HANDOVER_MS, SENDER_MS
from tests.unit.live.test_subscribe_stream import C, Live, error_of, filled, gap_of, places, snapshot
from tests.unit.streams.hub import STREAM


def sliced(count: int) -> Live:
    """A stream whose snapshot is handed over after every event."""
    live = filled(count)
    live.slice_ms = 0
    return live


def test_the_rest_of_a_snapshot_is_handed_over_until_it_is_live() -> None:
    live = sliced(7)
    live.subscribe()
    opened, first = live.frames()
    assert opened["payload"]["snapshot_high_watermark_seq_no"] == 7
    assert places([first]) == snapshot(1)
    assert live.go_on_to_the_end() == 6
    assert places(live.frames()) == snapshot(*range(2, 8))
    live.emit("e8")
    live.fan_out()
    assert places(live.frames()) == [("live", 8)]


def test_what_is_committed_between_two_slices_comes_once_and_live() -> None:
    live = sliced(3)
    more = iter(range(4, 8))

    def commit_another(_frame: dict[str, Any]) -> None:
        if (n := next(more, None)) is not None:
            live.emit(f"e{n}")
            live.fan_out()

    live.wire.after = commit_another
    live.subscribe()
    live.go_on_to_the_end()
    live.fan_out()
    opened, *events = live.frames()
    assert opened["payload"]["snapshot_high_watermark_seq_no"] == 3
    assert places(events) == [*snapshot(1, 2, 3), *(("live", n) for n in range(4, 8))]


def test_thousands_of_events_take_as_many_slices_as_their_posts_take_time() -> None:
    live = filled(2_600)

    def take_time(_frame: dict[str, Any]) -> None:
        live.hub.clock.ms += 8

    live.wire.after = take_time
    live.subscribe()
    assert live.go_on_to_the_end() == 1, "1,500 posts of 8 ms are a slice"
    _, *events = live.frames()
    assert places(events) == snapshot(*range(1, 2_601))


def test_a_handover_that_comes_twice_is_taken_once() -> None:
    live = sliced(4)
    live.subscribe()
    (handover,) = live.handovers.sent
    live.go_on(handover)
    live.go_on(handover)
    live.handovers.sent.remove(handover)
    live.go_on_to_the_end()
    live.go_on(handover)
    assert places(live.frames()[1:]) == snapshot(1, 2, 3, 4)
    assert C not in live.wire.closed


def test_a_sender_that_died_is_found_when_its_message_comes_again_and_its_connection_is_closed() -> None:
    """Nobody knows what it posted: a contiguous prefix, or closed."""
    live = sliced(4)
    live.subscribe()
    (handover,) = live.handovers.sent
    live.subscriptions.take_over(handover, live.hub.clock.ms + SENDER_MS, "dies")
    with pytest.raises(Unavailable):
        live.go_on(handover)
    assert C not in live.wire.closed, "it may be alive"
    live.hub.clock.ms += SENDER_MS + 1
    live.go_on(handover)
    assert C in live.wire.closed
    assert not live.subscriptions.rows
    assert C not in live.connections.rows


def test_a_snapshot_that_nobody_goes_on_with_is_closed_by_the_next_broadcast() -> None:
    live = sliced(4)
    live.subscribe()
    live.emit("e5")
    live.fan_out()
    assert C not in live.wire.closed, "a handover may wait"
    live.hub.clock.ms += HANDOVER_MS + 1
    live.emit("e6")
    live.fan_out()
    assert C in live.wire.closed
    live.go_on_to_the_end()
    assert places(live.frames()[1:]) == snapshot(1)


def test_a_token_that_ends_between_two_slices_is_told_so_and_closed() -> None:
    live = Live(expires_ms=Live().hub.clock.ms + 5_000)
    live.emit("e1", "e2", "e3")
    live.slice_ms = 0
    live.subscribe()
    live.frames()
    live.hub.clock.ms += 10_000
    live.go_on_to_the_end()
    (farewell,) = live.frames()
    assert farewell["payload"]["code"] == "auth_failed"
    assert C in live.wire.closed


def test_a_subscription_overtaken_between_two_slices_is_told_so_and_ends() -> None:
    live = sliced(9)
    live.subscribe()
    live.frames()
    live.hub.prune(STREAM, 6)
    live.go_on_to_the_end()
    gap, error = live.frames()
    assert gap_of(gap) == ("snapshot", 2, 7, 5)
    assert error_of(error)["machine_code"] == "SDK_RUNTIME_STREAM_DEGRADED"
    assert not live.subscriptions.rows
    assert C not in live.wire.closed


def test_whoever_unsubscribes_between_two_slices_gets_no_more() -> None:
    live = sliced(4)
    live.subscribe()
    opened, *_ = live.frames()
    live.say("unsubscribe", {"subscription_id": opened["payload"]["subscription_id"]})
    live.go_on_to_the_end()
    assert live.frames() == []
    assert C not in live.wire.closed


@pytest.mark.parametrize("reached", [False, None])
def test_a_post_that_fails_in_a_later_slice_closes_the_connection(
    reached: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = sliced(4)
    live.subscribe()
    live.frames()

    def fails(_connection: str, _text: str) -> bool:
        if reached is None:
            raise Unavailable("lost")
        return reached

    monkeypatch.setattr(live.wire, "post", fails)
    live.go_on_to_the_end()
    assert C in live.wire.closed
    assert not live.subscriptions.rows
    assert not live.handovers.sent
