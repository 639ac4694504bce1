"""S17: how the live client connects, waits, renews its token, and gives a connection up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

import pytest
from websockets.protocol import State

from millrace_client.errors import Refused, Unreachable, Usage
from millrace_client.sync.live import Live
from millrace_client.sync.settings import Backoff, Settings
from millrace_client.tokens import Grant, sign
from tests.unit.client.fake_hub import Answer, FakeHub, Json, Peer
from tests.unit.client.live_clients import (
    Naps,
    drop,
    honest,
    item,
    live,
    positions,
    run,
    silence,
    slow_down,
)


def test_the_hub_says_how_long_to_wait() -> None:
    async def test() -> None:
        naps = Naps()
        async with FakeHub() as hub, live(hub, sleep=naps) as client:
            hub.twists["submit_events"].append(slow_down)
            await client.submit(item("x"))
            assert naps.taken == [1.5]
            assert len(hub.payloads("connect")) == 1
        naps.taken.clear()
        async with FakeHub() as hub, live(hub, sleep=naps, random=lambda: 0.0) as client:
            hub.twists["connect"].append(slow_down)
            await client.submit(item("x"))
            assert naps.taken == [1.5]

    run(test())


def test_an_error_that_answers_nothing_means_a_new_connection_and_a_new_sync() -> None:
    async def test() -> None:
        async with FakeHub() as hub, live(hub) as client:
            hub.commit("a")
            events = client.follow(["a"])
            await anext(events)
            waiting = asyncio.ensure_future(anext(events))
            await hub.peers[0].error("rate_limited")
            await hub.hears("sync", 2)
            assert hub.payloads("sync")[-1]["since_committed_id"] == 1
            await hub.publish("a")
            assert (await waiting)["committed_id"] == 2
            await events.aclose()

    run(test())


def test_a_refused_token_is_final() -> None:
    async def test() -> None:
        async with FakeHub() as hub, live(hub) as client:
            hub.tokens = {"other"}
            with pytest.raises(Refused, match="auth_failed"):
                await positions(client, 1)
            with pytest.raises(Refused, match="auth_failed"):
                await client.submit(item("x"))
            assert len(hub.payloads("connect")) == 2
            hub.tokens = None
            assert [result["id"] for result in await client.flush()] == ["x"]

    run(test())


@pytest.mark.parametrize("expired", [False, True])
def test_a_connection_the_hub_has_forgotten_is_replaced_and_an_expired_token_then_final(expired: bool) -> None:
    async def test() -> None:
        async def forget(peer: Peer, message: Json, _: Answer) -> None:
            hub.tokens = {"new" if expired else "T"}
            await peer.error("auth_failed", message["msg_id"])

        async with FakeHub() as hub, live(hub) as client:
            hub.commit("a")
            hub.twists["sync"].append(forget)
            if expired:
                with pytest.raises(Refused, match="auth_failed"):
                    await positions(client, 1)
            else:
                assert await positions(client, 1) == [1]
            assert len(hub.payloads("connect")) == 2

    run(test())


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_token_that_expires_is_replaced_if_there_is_a_way_to_get_one(asynchronous: bool) -> None:
    async def test() -> None:
        numbers = count(1)

        async def later() -> str:
            return f"T{next(numbers)}"

        token: Callable[[], str] | Callable[[], Awaitable[str]] = later if asynchronous else lambda: f"T{next(numbers)}"

        async def expire(peer: Peer, message: Json, _: Answer) -> None:
            hub.tokens = {"T3"}
            await peer.error("auth_failed", message["msg_id"])

        async with FakeHub() as hub, live(hub, token=token) as client:
            for _ in range(5):
                hub.commit("a")
            hub.twists["sync"].extend([honest, expire])
            assert await positions(client, 5, ["a"]) == [1, 2, 3, 4, 5]
            assert [payload["token"] for payload in hub.payloads("connect")] == ["T1", "T2", "T3"]

    run(test())


@pytest.mark.parametrize(("fresh", "tries"), [(False, 1), (True, 4)])
def test_tokens_that_are_refused_again_and_again_are_final_too(fresh: bool, tries: int) -> None:
    async def test() -> None:
        numbers = count(1)
        async with FakeHub() as hub, live(hub, token=lambda: f"T{next(numbers) if fresh else 0}") as client:
            hub.tokens = set()
            with pytest.raises(Refused, match="auth_failed"):
                await positions(client, 1)
            assert len(hub.payloads("connect")) == tries

    run(test())


def test_a_forbidden_partition_is_final_and_the_client_id_comes_from_the_token() -> None:
    async def test() -> None:
        async def forbid(peer: Peer, message: Json, _: Answer) -> None:
            await peer.error("forbidden", message["msg_id"])

        async with FakeHub() as hub:
            hub.twists["sync"].append(forbid)
            token = sign(Grant("C7", ["demo"]), "0" * 32)
            async with live(hub, token=token, client_id=None) as client:
                with pytest.raises(Refused, match="forbidden"):
                    await positions(client, 1, ["secret"])
            assert hub.payloads("connect")[0]["client_id"] == "C7"
            async with live(hub, token="opaque", client_id=None) as client:
                with pytest.raises(Usage, match="client_id"):
                    await positions(client, 1)

    run(test())


def test_backoff_doubles_to_thirty_seconds_and_a_healthy_minute_resets_it() -> None:
    backoff = Backoff(Settings(random=lambda: 1.0))
    assert [backoff.next() for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]

    async def test() -> None:
        naps, now = Naps(), [0.0]
        async with FakeHub() as hub:
            hub.twists["sync"].extend([drop, drop, drop])
            hub.commit("a")
            async with live(hub, sleep=naps, random=lambda: 1.0, clock=lambda: now[0]) as client:
                events = client.follow()
                await anext(events)
                assert naps.taken == [0.5, 1, 2]
                now[0] += 60
                hub.peers[0].drop()
                hub.commit("a")
                await anext(events)
                assert naps.taken == [0.5, 1, 2, 0.5]
                await events.aclose()

    run(test())


def test_heartbeats_go_out_and_a_hub_that_stops_answering_them_is_left() -> None:
    async def test() -> None:
        async with FakeHub() as hub, live(hub, heartbeat=0.01, request_timeout=2) as client:
            hub.commit("a")
            events = client.follow()
            await anext(events)
            waiting = asyncio.ensure_future(anext(events))
            await hub.hears("heartbeat", 3)
            assert len(hub.payloads("connect")) == 1
            hub.twists["heartbeat"].append(silence)
            await hub.hears("connect", 2)
            await hub.publish("a")
            assert (await waiting)["committed_id"] == 2
            await events.aclose()

    run(test())


def test_an_address_that_is_no_hub_is_said_to_be_none() -> None:
    async def test() -> None:
        async with Live("http://127.0.0.1:1", "demo", "T", client_id="C1", store=":memory:") as client:
            with pytest.raises(Unreachable, match="not a WebSocket address"):
                await positions(client, 1)
        with pytest.raises(Usage, match="async with"):
            client.follow()

    run(test())


async def deafen(peer: Peer, _: Json, __: Answer) -> None:
    """The hub hears nothing more on this connection, not even a goodbye."""
    peer.connection.transport.pause_reading()


def test_a_connection_that_is_given_up_leaves_no_socket_open() -> None:
    async def test() -> None:
        async with FakeHub() as hub, live(hub, request_timeout=1, connect_timeout=1) as client:
            hub.twists["submit_events"].append(deafen)
            sending = asyncio.create_task(client.submit(item("x")))
            await hub.hears("submit_events", 1)
            [deaf], given_up = hub.peers, client._dialers[0]._socket
            assert (await sending)["committed_id"] == 1
            assert given_up is not None
            assert given_up is not client._dialers[0]._socket
            assert given_up._connection.transport.is_closing()
            deaf.drop()

    run(test())


def test_a_client_that_is_cancelled_while_it_says_goodbye_leaves_no_socket_open() -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            client = await live(hub).__aenter__()
            await client.submit(item("x"))
            socket = client._dialers[0]._socket
            assert socket is not None
            hub.peers[0].connection.transport.pause_reading()
            leaving = asyncio.create_task(client.__aexit__())
            while socket._connection.protocol.state is State.OPEN:  # noqa: ASYNC110 (the library has no event for it)
                await asyncio.sleep(0)
            leaving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaving
            assert socket._connection.transport.is_closing()
            hub.peers[0].drop()

    run(test())
