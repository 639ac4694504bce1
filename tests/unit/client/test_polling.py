"""Reading a stream: every event once and in order, or a word about what is lost."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from millrace_client.streams.polling import Batch, Polled
from millrace_client.streams.runtime import Stream
from millrace_client.streams.sdk_errors import (
    CursorExpired,
    NoAnswer,
    SdkError,
    StreamDegraded,
    StreamGapped,
)
from millrace_client.sync.settings import Settings
from tests.unit.client.fake_streams import FakeStreams, Json, Lost, No, gap, run


async def read(stream: Stream, cursor: str | None = None, **options: Any) -> list[Polled]:
    return [polled async for polled in stream.events(cursor, follow=False, **options)]


def positions(polled: Sequence[Polled]) -> list[int]:
    return [each.event["seq_no"] for each in polled]


def test_a_poll_is_one_batch_and_the_cursor_after_it() -> None:
    """T6, T9"""

    async def test() -> None:
        hub = FakeStreams()
        hub.fill(5)
        async with hub.runtime() as runtime:
            stream = runtime.stream("s 1")
            first = await stream.poll()
            assert first == Batch(tuple(hub.log[:3]), "1@3", 0)
            assert await stream.poll(first.next_cursor, max=1) == Batch((hub.log[3],), "1@4", 0)
            hub.floor = 3
            assert await stream.poll(max=2) == Batch((gap(3), hub.log[2]), "2@3", 2)
        assert [str(request.url.query, "ascii") for request in hub.requests] == ["", "cursor=1%403&max=1", "max=2"]

    run(test())


def test_an_empty_cursor_is_sent_as_it_is_and_never_taken_for_none() -> None:
    """T6: a cursor never resets by itself."""

    async def test() -> None:
        hub = FakeStreams()
        async with hub.runtime() as runtime:
            with pytest.raises(SdkError, match="SDK_RUNTIME_INVALID_CURSOR"):
                await runtime.stream("s 1").poll("")
            with pytest.raises(SdkError, match="SDK_RUNTIME_INVALID_CURSOR"):
                await read(runtime.stream("s 1"), "", on_gap="yield")

    run(test())


def test_a_poll_raises_expiry_and_degradation_as_they_come() -> None:
    """T9"""

    async def test() -> None:
        hub = FakeStreams()
        hub.fill(5)
        async with hub.runtime() as runtime:
            stream = runtime.stream("s 1")
            cursor = (await stream.poll(max=1)).next_cursor
            hub.floor = 4
            with pytest.raises(CursorExpired):
                await stream.poll(cursor)
            with pytest.raises(StreamDegraded):
                await stream.poll(cursor)

    run(test())


def test_pages_follow_each_other_until_the_end() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.fill(7)
        async with hub.runtime() as runtime:
            seen = await read(runtime.stream("s 1"))
            assert [each.event for each in seen] == hub.log
            assert not any(each.gap for each in seen)
            assert await read(runtime.stream("s 1"), seen[-1].cursor) == []

    run(test())


UNKNOWN = [
    {"event_type": "acme.sensor.calibrated", "payload": {"drift": 1.5, "StreamGap": True}, "extensions": {"a.b": [1]}},
    {"event_type": "ExtensionEvent", "payload": {"extension_event_type": "acme.sensor.moved_by.hand", "to": None}},
    {"event_type": "acme.sensor.v9.of-tomorrow", "payload": {}, "field_of_tomorrow": {"deep": [{}]}},
]
"""Extension events that nobody here has heard of: their own event type, and the one that is named in the payload."""


def test_an_unknown_extension_event_is_read_as_it_is_and_stops_nobody() -> None:
    """T2: it must not break a consumer's parsing, whatever it holds and wherever in a batch it stands."""

    async def test() -> None:
        hub = FakeStreams()
        for extension in UNKNOWN:
            hub.fill(1)
            hub.log.append({"event_id": f"x{len(hub.log)}", "seq_no": len(hub.log) + 1, **extension})
        hub.fill(1)
        async with hub.runtime() as runtime:
            stream = runtime.stream("s 1")
            seen = await read(stream)
            assert [each.event for each in seen] == hub.log
            assert not any(each.gap for each in seen)
            for each in seen:
                resumed = await read(stream, each.cursor)
                assert [one.event for one in resumed] == hub.log[len(hub.log) - len(resumed) :]

    run(test())


def test_an_unknown_extension_event_after_lost_history_is_no_gap() -> None:
    """T2, T9: only the hub's own word is one."""

    async def test() -> None:
        hub = FakeStreams()
        hub.fill(2)
        hub.log.append({"event_id": "x", "seq_no": 3, **UNKNOWN[0]})
        hub.floor = 3
        async with hub.runtime() as runtime:
            seen = await read(runtime.stream("s 1"))
        assert [(each.event["event_type"], each.gap) for each in seen] == [
            ("StreamGap", True),
            ("acme.sensor.calibrated", False),
        ]

    run(test())


def test_every_cursor_resumes_without_leaving_anything_out() -> None:
    """What it repeats is at most the batch: nothing after its last event."""

    async def test() -> None:
        hub = FakeStreams()
        hub.fill(7)
        async with hub.runtime() as runtime:
            stream = runtime.stream("s 1")
            seen = await read(stream)
            assert [each.cursor for each in seen] == [None, None, "1@3", "1@3", "1@3", "1@6", "1@7"]
            resumed = [positions(await read(stream, each.cursor)) for each in seen]
        assert [came[0] if came else 8 for came in resumed] == [1, 1, 4, 4, 4, 7, 8]
        assert all(came == list(range(8 - len(came), 8)) for came in resumed)

    run(test())


def test_at_the_end_it_waits_and_asks_again() -> None:
    async def test() -> None:
        hub = FakeStreams()
        naps: list[float] = []

        async def grow(seconds: float) -> None:
            naps.append(seconds)
            if len(naps) == 3:
                hub.fill(2)

        async with (
            hub.runtime(settings=Settings(sleep=grow)) as runtime,
            aclosing(runtime.stream("s 1").events(wait=0.25)) as events,
        ):
            assert [(await anext(events)).event["seq_no"] for _ in range(2)] == [1, 2]
        assert naps == [0.25, 0.25, 0.25]

    run(test())


@pytest.mark.parametrize("degraded", [False, True], ids=["expired", "degraded"])
def test_a_gap_stops_the_reader_and_resets_nothing(degraded: bool) -> None:
    """T9"""

    async def test() -> None:
        hub = FakeStreams()
        hub.fill(3)
        async with hub.runtime() as runtime, aclosing(runtime.stream("s 1").events()) as events:
            [_, _, last] = [await anext(events) for _ in range(3)]
            hub.fill(6)
            hub.floor = 6
            if degraded:
                hub.degraded.add("1")
            hub.requests.clear()
            with pytest.raises(StreamGapped) as caught:
                await anext(events)
            assert (caught.value.cursor, caught.value.position) == (last.cursor, 3)
            assert isinstance(caught.value.__cause__, StreamDegraded if degraded else CursorExpired)
            assert caught.value.machine_code == caught.value.__cause__.machine_code
            assert [request.url.params.get("cursor") for request in hub.requests] == ["1@3"]
            with pytest.raises(StopAsyncIteration):
                await anext(events)

    run(test())


def test_a_reader_that_gave_nothing_yet_has_no_position() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.fill(3)
        hub.floor = 3
        async with hub.runtime() as runtime:
            with pytest.raises(StreamGapped) as caught:
                await read(runtime.stream("s 1"), "9@1")
        assert (caught.value.cursor, caught.value.position) == ("9@1", None)

    run(test())


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_gap_comes_first_and_then_what_is_kept(most: int) -> None:
    """T9, with a gap that fills its batch alone or not."""

    async def test() -> None:
        hub = FakeStreams()
        hub.fill(3)
        async with hub.runtime() as runtime:
            stream = runtime.stream("s 1")
            cursor = (await read(stream))[-1].cursor
            hub.fill(5)
            hub.floor = 6
            seen = await read(stream, cursor, on_gap="yield", max=most)
            assert [each.event for each in seen] == [gap(6), *hub.log[5:]]
            assert [each.gap for each in seen] == [True, False, False, False]
            assert seen[0].cursor == ("2@5" if most == 1 else None)
            resumed = await read(stream, seen[-1].cursor)
            assert resumed == []

    run(test())


def test_after_a_reset_nothing_is_given_twice() -> None:
    """A neighbour with the same subscription let it degrade: what this reader has given is still kept."""

    async def test() -> None:
        hub = FakeStreams()
        hub.fill(8)
        async with hub.runtime() as runtime, aclosing(runtime.stream("s 1").events(on_gap="yield")) as events:
            seen = [await anext(events) for _ in range(6)]
            hub.floor = 2
            hub.degraded.add("1")
            seen += [await anext(events) for _ in range(3)]
        assert positions(seen) == [1, 2, 3, 4, 5, 6, 1, 7, 8]
        assert [each.gap for each in seen] == [False] * 6 + [True] + [False] * 2
        assert positions(seen[-2:]) == [7, 8]

    run(test())


def test_a_reader_that_starts_at_the_floor_is_told_so_whatever_it_does_about_gaps() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.fill(5)
        hub.floor = 4
        async with hub.runtime() as runtime:
            seen = await read(runtime.stream("s 1"), on_gap="raise")
        assert [each.event for each in seen] == [gap(4), *hub.log[3:]]
        assert [each.gap for each in seen] == [True, False, False]

    run(test())


def test_a_producers_own_stream_gap_is_an_event_like_any_other() -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.fill(2)
        hub.log[0]["event_type"] = "StreamGap"
        async with hub.runtime() as runtime:
            assert [each.gap for each in await read(runtime.stream("s 1"))] == [False, False]

    run(test())


@pytest.mark.parametrize(
    ("cursor", "skipped", "dropped"), [(None, [2], 0), (None, [1, 3], 0), ("1@4", [5, 7], 0), (None, [4], 3)]
)
def test_a_position_the_hub_skips_without_a_word_is_noticed(
    cursor: str | None, skipped: list[int], dropped: int
) -> None:
    """T3, T8"""

    async def test() -> None:
        hub = FakeStreams()
        events = [{"event_id": f"e{number}", "event_type": "DeliveryTrace", "seq_no": number} for number in skipped]
        body = {"events": events, "next_cursor": "1@9", "dropped_count": dropped}
        hub.trouble.append(httpx.Response(200, json=body))
        async with hub.runtime() as runtime:
            with pytest.raises(NoAnswer, match="without a word"):
                await read(runtime.stream("s 1"), cursor, on_gap="yield")

    run(test())


def test_an_event_too_large_for_a_batch_is_raised_with_its_size_and_read_after_negotiating() -> None:
    """T10"""

    async def test() -> None:
        hub = FakeStreams()
        hub.fill(5)
        hub.largest = 5
        async with hub.runtime() as runtime:
            stream = runtime.stream("s 1")
            events = stream.events(on_gap="yield")
            seen = [await anext(events) for _ in range(4)]
            with pytest.raises(SdkError, match="SDK_VALIDATION_BATCH_TOO_LARGE") as caught:
                await anext(events)
            assert caught.value.details == {"seq_no": 5, "event_bytes": 900, "max_batch_bytes": 800}
            assert positions(seen) == [1, 2, 3, 4]
            await runtime.negotiate(limits={"max_batch_bytes": 1_000})
            assert positions(await read(stream, seen[-1].cursor)) == [5]

    run(test())


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"events": [], "next_cursor": None, "dropped_count": 0},
        {"events": [], "next_cursor": "1@1"},
        {"events": ["x"], "next_cursor": "1@1", "dropped_count": 0},
        {"events": [{"event_type": "DeliveryTrace"}], "next_cursor": "1@1", "dropped_count": 0},
    ],
)
def test_a_batch_that_is_not_of_the_contract_is_no_answer(body: Json) -> None:
    async def test() -> None:
        hub = FakeStreams()
        hub.trouble.append(httpx.Response(200, json=body))
        async with hub.runtime() as runtime:
            with pytest.raises(NoAnswer, match="not of the contract"):
                await runtime.stream("s 1").poll()

    run(test())


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_each_event_is_given_once_or_told_lost(seed: int) -> None:
    """T3, T8, T9: the hub grows, prunes, fails, loses answers and degrades between any two polls."""

    async def test() -> None:
        chance = random.Random(seed)
        hub = FakeStreams(per_batch=chance.randint(1, 5))
        seen: list[Polled] = []

        def stir() -> None:
            hub.fill(chance.randint(0, 4))
            if chance.random() < 0.2:
                hub.floor = max(hub.floor, chance.randint(1, len(hub.log) + 1))
            if chance.random() < 0.1:
                hub.degraded.add(str(chance.randint(1, 5)))
            hub.trouble.append(chance.choice([None, None, None, Lost(), No("SDK_INTERNAL_UNAVAILABLE").response()]))

        async with hub.runtime(attempts=50) as runtime:
            async for polled in runtime.stream("s 1").events(on_gap="yield", follow=False):
                seen.append(polled)
                if len(seen) < 60:
                    stir()

        told = 0
        for polled in seen:
            position = polled.event["seq_no"]
            if polled.gap:
                told = max(told, position)
            else:
                assert position == told + 1
                told = position
        assert told >= len(hub.log)
        given = [each.event for each in seen if not each.gap]
        assert [event["event_id"] for event in given] == [hub.log[event["seq_no"] - 1]["event_id"] for event in given]

    run(test())


@pytest.mark.parametrize("seed", range(40))
def test_a_reader_that_dies_anywhere_and_resumes_at_its_last_cursor_misses_nothing(seed: int) -> None:
    """T3: at least once; what comes again has the position it had."""

    async def test() -> None:
        chance = random.Random(seed)
        hub = FakeStreams(per_batch=chance.randint(1, 5))
        hub.fill(20)
        cursor: str | None = None
        told, lives = 0, 0
        async with hub.runtime() as runtime:
            while told < len(hub.log):
                lives += 1
                options: dict[str, Any] = {"max": chance.randint(1, 5), "on_gap": "yield", "follow": False}
                dies_after = chance.randint(1, 7)
                async with aclosing(runtime.stream("s 1").events(cursor, **options)) as events:
                    async for polled in events:
                        position = polled.event["seq_no"]
                        assert polled.gap or position <= told + 1
                        told, cursor = max(told, position), polled.cursor
                        dies_after -= 1
                        if not dies_after:
                            break
                if chance.random() < 0.3:
                    hub.fill(1)
                    hub.floor = min(len(hub.log), hub.floor + chance.randint(0, 3))
                assert lives < 1_000
        assert told == len(hub.log)

    run(test())
