"""Streams over the WebSocket (T7): a snapshot up to its watermark, then live, never mixed; and an end that is told."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from millrace.ledger.domain.page import Origin, Page, Record
from tests.e2e.conftest import Hub
from tests.e2e.streams_api import Runtime, Stores, code, event, negotiated, numbers, sdk_error
from tests.e2e.test_socket import Socket, opened

WRITERS = 4
BEFORE = 20
EVENTS = int(os.environ.get("MILLRACE_SUBSCRIBED_EVENTS", "120"))
"""What the writers commit at least, while consumers come."""


@dataclass
class Tail:
    """A subscription on a socket of its own, and what its first frame said."""

    socket: Socket
    id: str
    watermark: int

    def next(self) -> tuple[str, dict[str, Any]]:
        message = self.socket.receive()
        assert message["type"] == "event", message
        payload = message["payload"]
        assert payload["subscription_id"] == self.id
        return payload["phase"], payload["event"]

    def take(self, count: int) -> list[tuple[str, int]]:
        return [(phase, one["seq_no"]) for phase, one in (self.next() for _ in range(count))]

    def until(self, last: int) -> list[tuple[str, int]]:
        """Phases and positions up to a position, which the stream is known to reach."""
        got = self.take(1)
        while got[-1][1] < last:
            got += self.take(1)
        return got

    def is_quiet(self) -> bool:
        """Nothing was sent that has not been read."""
        return bool(self.socket.ask("heartbeat", {})["type"] == "heartbeat_ack")


def subscribe(socket: Socket, runtime: Runtime, stream: str, **how: Any) -> dict[str, Any]:
    return socket.ask("subscribe", {"kind": "stream", "runtime_id": runtime.id, "stream_id": stream, **how})


@contextmanager
def tail(runtime: Runtime, stream: str, **how: Any) -> Iterator[Tail]:
    with opened(runtime.hub, "demo") as socket:
        first = subscribe(socket, runtime, stream, **how)
        assert first["type"] == "subscribed", first
        said = first["payload"]
        assert said.keys() == {"subscription_id", "snapshot_high_watermark_seq_no"}
        yield Tail(socket, said["subscription_id"], said["snapshot_high_watermark_seq_no"])


def refusal(message: dict[str, Any]) -> dict[str, Any]:
    """The SDK error inside an error message."""
    assert message["type"] == "error", message
    return sdk_error(message["payload"]["details"])


def snapshot(*positions: int) -> list[tuple[str, int]]:
    return [("snapshot", position) for position in positions]


def live(*positions: int) -> list[tuple[str, int]]:
    return [("live", position) for position in positions]


@pytest.mark.parametrize("how", [{"start": "snapshot"}, {"start": "head"}, {}])
def test_t7_a_snapshot_comes_first_and_then_what_is_committed(stack: Hub, how: dict[str, Any]) -> None:
    runtime, stream = negotiated(stack, "tailed"), f"from-{how.get('start', 'default')}"
    runtime.emit(stream, *(event(f"e{n}", extensions={"n": n}) for n in range(3)))
    with tail(runtime, stream, **how) as mine:
        assert mine.watermark == 3
        phase, first = mine.next()
        assert (phase, first) == ("snapshot", runtime.poll(stream)["events"][0])
        assert mine.take(2) == snapshot(2, 3)
        runtime.emit(stream, event("e3"), event("e4"))
        runtime.emit(stream, event("e5"))
        assert mine.take(3) == live(4, 5, 6)


def test_t7_a_tail_begins_after_what_is_there(stack: Hub) -> None:
    runtime = negotiated(stack, "tailed")
    with tail(runtime, "empty", start="tail") as early:
        runtime.emit("empty", event("a"), event("b"))
        with tail(runtime, "empty", start="tail") as late:
            assert (early.watermark, late.watermark) == (0, 2)
            runtime.emit("empty", event("c"))
            assert (early.take(3), late.take(1)) == (live(1, 2, 3), live(3))


def test_t7_a_cursor_goes_on_where_a_poll_ended(stack: Hub) -> None:
    runtime = negotiated(stack, "tailed")
    runtime.emit("resumed", *(event(f"e{n}") for n in range(5)))
    batch = runtime.poll("resumed", max=2)
    with tail(runtime, "resumed", cursor=batch["next_cursor"]) as mine:
        assert mine.watermark == 5
        assert mine.take(3) == snapshot(3, 4, 5)
        runtime.emit("resumed", event("e5"))
        assert mine.take(1) == live(6)
    assert numbers(runtime.poll("resumed", batch["next_cursor"])) == [3, 4, 5, 6], "the cursor itself has not moved"


def test_t7_snapshot_and_live_never_mix_while_four_writers_race(stack: Hub) -> None:
    """Consumers that subscribe at any moment, one of which reads nothing until all is over, get each event once."""
    runtime, over = negotiated(stack, "raced"), threading.Event()
    runtime.emit("s", *(event(f"before-{n}") for n in range(BEFORE)))

    def write(writer: int) -> int:
        """At least its share, then on until the last consumer is there, and once more."""
        written, last = 0, False
        while not last:
            last = written >= EVENTS // WRITERS and over.is_set()
            runtime.emit("s", *(event(f"{writer}-{written + n}") for n in range(2)))
            written += 2
        return written

    with ThreadPoolExecutor(WRITERS) as pool, tail(runtime, "s") as slow, tail(runtime, "s", start="tail") as new:
        writing = [pool.submit(write, writer) for writer in range(WRITERS)]
        try:
            begun = new.take(10)
            polled = runtime.poll("s")
            with tail(runtime, "s") as second, tail(runtime, "s", cursor=polled["next_cursor"]) as third:
                over.set()
                total = BEFORE + sum(done.result() for done in writing)
                assert slow.watermark == new.watermark == BEFORE
                assert BEFORE + 10 <= second.watermark <= third.watermark < total
                assert_seamless(slow, slow.until(total), 0)
                assert_seamless(new, begun + new.until(total), BEFORE)
                assert_seamless(second, second.until(total), 0)
                assert_seamless(third, third.until(total), numbers(polled)[-1])
        finally:
            over.set()


def assert_seamless(one: Tail, got: list[tuple[str, int]], after: int) -> None:
    """Each position once and in order, as a snapshot up to the watermark and live above it."""
    assert [at for _, at in got] == list(range(after + 1, got[-1][1] + 1))
    assert [phase for phase, _ in got] == ["snapshot" if at <= one.watermark else "live" for _, at in got]
    assert one.is_quiet()


def test_t8_what_lies_below_the_floor_is_told_before_the_snapshot(stack: Hub) -> None:
    runtime = negotiated(stack, "floored")
    runtime.emit("s", *(event(f"e{n}") for n in range(6)))
    runtime.prune("s", 4)
    with tail(runtime, "s") as mine, tail(runtime, "s", start="tail") as new:
        assert mine.watermark == 6
        phase, gap = mine.next()
        assert (phase, gap["event_id"], gap["event_type"], gap["seq_no"]) == ("snapshot", "gap-4", "StreamGap", 4)
        assert gap["payload"] == {"expected_seq_no": 1, "observed_seq_no": 5, "dropped_count": 4}
        assert mine.take(2) == snapshot(5, 6)
        runtime.emit("s", event("e6"))
        assert (mine.take(1), new.take(1)) == (live(7), live(7))


def test_t7_t9_a_cursor_below_the_floor_expires_as_a_poll_would_see_it(stack: Hub) -> None:
    runtime = negotiated(stack, "expired")
    runtime.emit("s", *(event(f"e{n}") for n in range(6)))
    cursor = runtime.poll("s", max=2)["next_cursor"]
    runtime.prune("s", 4)
    with opened(stack, "demo") as socket:
        told = [refusal(subscribe(socket, runtime, "s", cursor=cursor))["machine_code"] for _ in range(2)]
        assert told == ["SDK_RUNTIME_CURSOR_EXPIRED", "SDK_RUNTIME_STREAM_DEGRADED"]
        assert code(runtime.ask_poll("s", cursor), 409) == "SDK_RUNTIME_STREAM_DEGRADED"
        assert subscribe(socket, runtime, "s", start="tail")["type"] == "subscribed", "the connection goes on"


def test_t7_a_snapshot_overtaken_by_the_floor_ends_with_a_gap_and_an_error(stack: Hub) -> None:
    """The pruner has emptied pages and not raised the floor yet: only the snapshot's sender can notice."""
    runtime = negotiated(stack, "overtaken")
    for number in range(6):
        runtime.emit("s", event(f"e{number}"))
    cursor = runtime.poll("s", max=1)["next_cursor"]
    log, ledger = Stores.of(stack).log, runtime.ledger("s")
    for page in log.read(ledger, 2).pages[:2]:
        assert log.replace(ledger, page.emptied([page.first]))
    with tail(runtime, "s", cursor=cursor) as mine:
        assert mine.take(1) == snapshot(2)
        assert_ends(mine, "snapshot", 3, 5)


def test_t7_a_live_subscription_overtaken_by_the_floor_ends_with_a_gap_and_an_error(stack: Hub) -> None:
    """The pages are in the log without their bodies, as if they had been pruned before fan-out came to them."""
    runtime = negotiated(stack, "overtaken")
    runtime.emit("live", event("a"))
    with tail(runtime, "live") as mine:
        assert mine.take(1) == snapshot(1)
        records = tuple(Record(f"gone-{n}", bytes(32), None) for n in range(2))
        Stores.of(stack).log.append(runtime.ledger("live"), Page(2, records, 0, Origin("C1"), os.urandom(12)))
        assert_ends(mine, "live", 2, 4)
        with tail(runtime, "live", start="tail") as other:
            runtime.emit("live", event("b"))
            assert other.take(1) == live(4)
            assert mine.is_quiet(), "it has ended"


def assert_ends(mine: Tail, phase: str, expected: int, observed: int) -> None:
    got, gap = mine.next()
    assert (got, gap["event_type"], gap["event_id"]) == (phase, "StreamGap", f"gap-{observed - 1}")
    lost = observed - expected
    assert gap["payload"] == {"expected_seq_no": expected, "observed_seq_no": observed, "dropped_count": lost}
    told = refusal(mine.socket.receive())
    assert (told["machine_code"], told["details"]["subscription_id"]) == ("SDK_RUNTIME_STREAM_DEGRADED", mine.id)
    assert mine.is_quiet(), "the connection goes on"


def test_a_hostile_cursor_subscribes_to_nothing(stack: Hub) -> None:
    runtime = negotiated(stack, "hostile")
    runtime.emit("s", event("a"), event("b"))
    runtime.emit("t", event("a"), event("b"))
    mine, other = (runtime.poll(stream, max=1)["next_cursor"] for stream in ("s", "t"))
    with opened(stack, "demo") as socket:
        for cursor in ("", "x", mine[:-1], mine + "A", mine[:-2] + ("AA" if mine[-2:] != "AA" else "BB"), other):
            assert refusal(subscribe(socket, runtime, "s", cursor=cursor))["machine_code"] == (
                "SDK_RUNTIME_INVALID_CURSOR"
            )
        assert subscribe(socket, runtime, "s", cursor=mine)["type"] == "subscribed"


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({}, "kind"),
        ({"kind": []}, "kind"),
        ({"kind": "stream"}, "runtime_id"),
        ({"kind": "stream", "runtime_id": "r"}, "stream_id"),
        ({"kind": "stream", "runtime_id": "r" * 129, "stream_id": "s"}, "runtime_id"),
        ({"kind": "stream", "runtime_id": "r", "stream_id": {}}, "stream_id"),
        ({"kind": "stream", "runtime_id": "r", "stream_id": "s", "start": "middle"}, "start"),
        ({"kind": "stream", "runtime_id": "r", "stream_id": "s", "start": []}, "start"),
        ({"kind": "stream", "runtime_id": "r", "stream_id": "s", "cursor": 5}, "cursor"),
        ({"kind": "stream", "runtime_id": "r", "stream_id": "s", "cursor": "x", "start": "tail"}, "cursor"),
    ],
)
def test_a_bad_subscribe_names_its_field(stack: Hub, payload: dict[str, Any], field: str) -> None:
    with opened(stack, "demo") as socket:
        answer = socket.ask("subscribe", payload)["payload"]
        assert (answer["code"], answer["details"]["field"]) == ("bad_request", field)


def test_a_runtime_the_token_does_not_reach_cannot_be_tailed(stack: Hub) -> None:
    runtime = negotiated(stack, "theirs")
    runtime.emit("s", event("a"))
    for claims in ({"partitions": ["runtime:mine"]}, {"roles": ["producer"]}):
        with opened(stack, "demo", **claims) as socket:
            assert subscribe(socket, runtime, "s")["payload"]["code"] == "forbidden"
