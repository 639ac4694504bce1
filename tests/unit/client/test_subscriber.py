"""Live tails: every event once and in order, over connections that break, and no gap without a word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from millrace_client import Refused, Settings, Subscriber, TailedEvent, TailGapped, Usage
from tests.unit.client.fake_hub import Answer, FakeHub, Json, Peer, Twist
from tests.unit.client.live_clients import Naps, drop, run, slow_down


def subscriber(hub: FakeHub) -> Subscriber:
    return Subscriber(hub.url, "T", client_id="C1", settings=Settings(sleep=Naps()))


def sending(number: str, *positions: int, then: Twist | None = None, fields: Json | None = None, **first: Any) -> Twist:
    """Answers `subscribed`, sends events at these positions, and then does something else."""

    async def twist(peer: Peer, message: Json, answer: Answer) -> None:
        await peer.say("subscribed", {"subscription_id": "s", **first}, message["msg_id"])
        for position in positions:
            event = {**(fields or {}), number: position}
            await peer.say("event", {"subscription_id": "s", "phase": "snapshot", "event": event})
        if then is not None:
            await then(peer, message, answer)

    return twist


def gap(through: int, then: Twist | None = None) -> Twist:
    async def twist(peer: Peer, message: Json, answer: Answer) -> None:
        event = {"seq_no": through, "event_type": "StreamGap", "event_id": f"gap-{through}", "payload": {}}
        await peer.say("event", {"subscription_id": "s", "phase": "live", "event": event})
        if then is not None:
            await then(peer, message, answer)

    return twist


async def ended(peer: Peer, _: Json, __: Answer) -> None:
    """As the hub ends a subscription of a session whose next events are pruned."""
    details = {"subscription_id": "s", "prunedThrough": 6}
    await peer.say("error", {"code": "bad_request", "message": "pruned", "details": details})


async def stream_ended(peer: Peer, _: Json, __: Answer) -> None:
    inside = {"machine_code": "SDK_RUNTIME_STREAM_DEGRADED", "details": {"subscription_id": "s", "floor_seq_no": 7}}
    await peer.say("error", {"code": "bad_request", "message": "pruned", "details": inside})


async def taken(tail: AsyncGenerator[TailedEvent, None], most: int) -> list[tuple[int, bool]]:
    got: list[tuple[int, bool]] = []
    async with aclosing(tail):
        async for one in tail:
            got.append((one.position, one.gap))
            if len(got) == most:
                break
    return got


def test_a_session_is_resumed_after_the_last_event_that_was_given() -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.twists["subscribe"] += [sending("sequence", 4, 5, then=drop), sending("sequence", 6)]
            async with subscriber(hub) as client:
                assert await taken(client.session("call-7", after=3), 3) == [(4, False), (5, False), (6, False)]
            wanted = [{"kind": "session", "session_id": "call-7", "after_sequence": after} for after in (3, 5)]
            assert hub.payloads("subscribe") == wanted
            assert hub.payloads("connect")[0] == {"token": "T", "client_id": "C1"}

    run(test())


def test_a_stream_that_was_lost_is_read_again_and_gives_nothing_twice() -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.twists["subscribe"] += [sending("seq_no", 1, 2, then=drop), sending("seq_no", 1, 2, 3)]
            async with subscriber(hub) as client:
                assert await taken(client.stream("r", "main"), 3) == [(1, False), (2, False), (3, False)]
            assert {one["start"] for one in hub.payloads("subscribe")} == {"snapshot"}

    run(test())


def test_a_tail_of_what_is_new_does_not_lose_what_came_while_the_connection_was_down() -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            first = sending("seq_no", then=drop, snapshot_high_watermark_seq_no=2)
            hub.twists["subscribe"] += [first, sending("seq_no", 1, 2, 3, snapshot_high_watermark_seq_no=3)]
            async with subscriber(hub) as client:
                assert await taken(client.stream("r", "main", after=None), 1) == [(3, False)]
            assert [one["start"] for one in hub.payloads("subscribe")] == ["tail", "snapshot"]

    run(test())


@pytest.mark.parametrize("number", ["sequence", "seq_no"])
def test_positions_that_are_missing_are_a_gap(number: str) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.twists["subscribe"] += [sending(number, 1, 4), sending(number, 1, 4)]
            async with subscriber(hub) as client:
                tails = (
                    [client.session("s", on_gap=how) for how in ("raise", "yield")]
                    if number == "sequence"
                    else [client.stream("r", "s", on_gap=how) for how in ("raise", "yield")]
                )
                with pytest.raises(TailGapped, match="Events 2 to 3 are no longer kept") as raised:
                    await taken(tails[0], 3)
                assert (raised.value.position, raised.value.pruned_through) == (1, 3)
                assert await taken(tails[1], 3) == [(1, False), (3, True), (4, False)]

    run(test())


def test_a_session_whose_next_events_are_pruned_tells_so_and_goes_on_after_them() -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.twists["subscribe"] += [sending("sequence", 4, then=ended), sending("sequence", 7)]
            async with subscriber(hub) as client:
                tail = client.session("s", after=3, on_gap="yield")
                assert await taken(tail, 3) == [(4, False), (6, True), (7, False)]
            assert [one["after_sequence"] for one in hub.payloads("subscribe")] == [3, 6]

    run(test())


def test_a_stream_whose_next_events_are_pruned_tells_so_once() -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            again = sending("seq_no", then=gap(6, sending_events(7)))
            hub.twists["subscribe"] += [sending("seq_no", 1, then=gap(6, stream_ended)), again]
            async with subscriber(hub) as client:
                assert await taken(client.stream("r", "s", on_gap="yield"), 3) == [(1, False), (6, True), (7, False)]

    run(test())


def sending_events(*positions: int) -> Twist:
    async def twist(peer: Peer, _: Json, __: Answer) -> None:
        for position in positions:
            event = {"seq_no": position}
            await peer.say("event", {"subscription_id": "s", "phase": "live", "event": event})

    return twist


def test_a_hub_that_is_busy_is_asked_again_on_the_same_connection() -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.twists["subscribe"] += [slow_down, sending("sequence", 1)]
            async with subscriber(hub) as client:
                assert await taken(client.session("s"), 1) == [(1, False)]
            assert len(hub.payloads("connect")) == 1

    run(test())


def test_a_session_that_is_not_the_tokens_is_refused() -> None:
    async def forbidden(peer: Peer, message: Json, _: Answer) -> None:
        await peer.error("forbidden", message["msg_id"])

    async def test() -> None:
        async with FakeHub() as hub:
            hub.twists["subscribe"].append(forbidden)
            async with subscriber(hub) as client:
                with pytest.raises(Refused, match="forbidden"):
                    await taken(client.session("s"), 1)

    run(test())


def test_a_tail_ends_with_its_subscriber() -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.twists["subscribe"].append(sending("sequence", 1))
            async with subscriber(hub) as client:
                tail = client.session("s")
                assert (await anext(tail)).position == 1
                rest = asyncio.ensure_future(anext(tail))
                await asyncio.sleep(0)
            with pytest.raises(StopAsyncIteration):
                await rest

    run(test())


def test_a_subscriber_that_was_not_opened_says_how_to_use_it() -> None:
    with pytest.raises(Usage, match="async with"):
        Subscriber("ws://hub", "T").session("s")
