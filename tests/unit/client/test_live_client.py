"""S17: the live client against a hub that interleaves, repeats, drops, slows down and expires."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from millrace_client.errors import Refused, Unreachable, Usage
from millrace_client.sync.following import CursorAhead, HistoryPruned
from millrace_client.sync.live import Live
from millrace_client.sync.protocol import Lost
from millrace_client.sync.settings import Backoff, Settings, Status
from millrace_client.sync.store import CursorMoved, Store
from millrace_client.tokens import Grant, sign
from tests.unit.client.fake_hub import Answer, FakeHub, Json, Peer, Twist

WAITS = 20


def run(test: Coroutine[Any, Any, None]) -> None:
    async def timed() -> None:
        async with asyncio.timeout(WAITS):
            await test

    asyncio.run(timed())


class Naps:
    """Sleeping that takes no time but is remembered."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        await asyncio.sleep(0)


def live(hub: FakeHub, store: Store | Path | str = ":memory:", **changes: Any) -> Live:
    outside: dict[str, Any] = {
        name: changes.pop(name) for name in ("token", "on_status", "client_id") if name in changes
    }
    chosen = Settings(**({"sleep": Naps()} | changes))
    known: dict[str, Any] = {"token": "T", "client_id": "C1"} | outside
    return Live(hub.url, "demo", known.pop("token"), store=store, settings=chosen, **known)


async def positions(client: Live, most: int, partitions: Sequence[str] | None = None, **options: Any) -> list[int]:
    return [event["committed_id"] async for event in client.follow(partitions, most=most, **options)]


def item(event_id: str, kind: str = "note", **payload: Any) -> Json:
    return {"id": event_id, "partitions": ["a"], "event": {"type": kind, "payload": payload}}


async def drop(peer: Peer, _: Json, __: Answer) -> None:
    peer.drop()


async def answer_and_drop(peer: Peer, _: Json, answer: Answer) -> None:
    await answer()
    peer.drop()


async def answer_and_close(peer: Peer, _: Json, answer: Answer) -> None:
    await answer()
    await peer.connection.close()


async def server_error(peer: Peer, message: Json, _: Answer) -> None:
    await peer.error("server_error", message["msg_id"])


async def slow_down(peer: Peer, message: Json, _: Answer) -> None:
    await peer.error("rate_limited", message["msg_id"], retry_after_ms=1500)


async def error_for_nobody(peer: Peer, _: Json, answer: Answer) -> None:
    await answer()
    await peer.error("bad_request")


async def nonsense(peer: Peer, _: Json, answer: Answer) -> None:
    await peer.connection.send("{")
    await answer()


async def silence(_: Peer, __: Json, ___: Answer) -> None:
    pass


async def broadcasts_around(peer: Peer, _: Json, answer: Answer) -> None:
    """New ones before and after the page, an old one, and one twice."""
    peer.hub.commit("a")
    await peer.deliver()
    await answer()
    new = peer.hub.commit("a")
    await peer.deliver()
    await peer.say("event_broadcast", new)
    await peer.say("event_broadcast", peer.hub.log[0])


TWISTS: list[Twist] = [
    drop,
    answer_and_drop,
    answer_and_close,
    server_error,
    slow_down,
    error_for_nobody,
    nonsense,
    silence,
]


@pytest.mark.parametrize("partitions", [None, ["a"]], ids=["project", "partition"])
@pytest.mark.parametrize("place", [0, 1, 2], ids=["first page", "second page", "last page"])
@pytest.mark.parametrize("twist", [*TWISTS, broadcasts_around], ids=lambda twist: twist.__name__)
def test_whatever_happens_to_a_page_each_event_comes_once_and_in_order(
    twist: Twist, place: int, partitions: list[str] | None
) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            for _ in range(5):
                hub.commit("a")
            hub.twists["sync"].extend([_honest] * place + [twist])
            async with live(hub, request_timeout=0.05) as client:
                events = client.follow(partitions)
                seen = [(await anext(events))["committed_id"] for _ in range(5)]
                while len(hub.log) < 8:
                    hub.commit("a")
                await hub.deliver()
                seen += [(await anext(events))["committed_id"] for _ in range(len(hub.log) - 5)]
                await events.aclose()
            assert seen == list(range(1, len(hub.log) + 1))

    run(test())


async def _honest(_: Peer, __: Json, answer: Answer) -> None:
    await answer()


def test_one_sync_at_a_time_and_pages_until_there_are_no_more() -> None:
    async def test() -> None:
        async with FakeHub() as hub, live(hub) as client:
            for number in range(7):
                hub.commit("a" if number % 2 else "b")
            assert await positions(client, 3, ["a"]) == [2, 4, 6]
            asked = hub.payloads("sync")
            assert [sync["since_committed_id"] for sync in asked] == [0, 4]
            assert asked[0] == {"since_committed_id": 0, "partitions": ["a"], "subscription_partitions": ["a"]}
            assert hub.heard[0]["payload"] == {"token": "T", "client_id": "C1", "project": "demo"}
            assert hub.heard[0]["protocol_version"] == "1.0"

    run(test())


def test_the_cursor_moves_only_past_what_was_dealt_with(tmp_path: Path) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            for _ in range(4):
                hub.commit("a")
            async with live(hub, tmp_path / "s.db") as client:
                async for event in client.follow():
                    if event["committed_id"] == 3:
                        break
            async with live(hub, tmp_path / "s.db") as client:
                assert await positions(client, 2) == [3, 4]
            hub.commit("a")
            async with live(hub, tmp_path / "s.db") as client:
                assert await positions(client, 1) == [5]
                assert await positions(client, 2, since=3, subscription="other") == [4, 5]

    run(test())


def test_a_page_without_events_of_ours_moves_the_cursor_to_the_watermark(tmp_path: Path) -> None:
    async def test() -> None:
        seen = asyncio.Event()
        async with FakeHub() as hub:
            hub.commit("b")

            def watch(status: Status) -> None:
                if status.state == "live":
                    seen.set()

            async with live(hub, tmp_path / "s.db", on_status=watch) as client:
                waiting = asyncio.create_task(positions(client, 1, ["a"]))
                await seen.wait()
            assert await waiting == []
            with Store(tmp_path / "s.db") as store:
                assert store.cursor(hub.url, "demo", '["a"]').position == 1

    run(test())


def test_what_on_apply_writes_and_the_cursor_are_one(tmp_path: Path) -> None:
    failing = [2]

    def keep(connection: sqlite3.Connection, events: Sequence[Json]) -> None:
        connection.execute("CREATE TABLE IF NOT EXISTS seen (position INTEGER)")
        for event in events:
            connection.execute("INSERT INTO seen VALUES (?)", (event["committed_id"],))
            if event["committed_id"] in failing:
                failing.clear()
                raise OSError("the disk is full")

    async def test() -> None:
        async with FakeHub() as hub:
            for _ in range(3):
                hub.commit("a")
            with Store(tmp_path / "s.db", on_apply=keep) as store:
                async with live(hub, store) as client:
                    with pytest.raises(OSError, match="full"):
                        await positions(client, 3)
                    assert await positions(client, 2) == [2, 3]
                assert store.connection.execute("SELECT position FROM seen").fetchall() == [(1,), (2,), (3,)]

    run(test())


def test_batches_move_the_cursor_once_for_all_their_events() -> None:
    async def test() -> None:
        calls: list[list[int]] = []
        store = Store(on_apply=lambda _, events: calls.append([event["committed_id"] for event in events]))
        async with FakeHub() as hub:
            for _ in range(4):
                hub.commit("a")
            with store:
                async with live(hub, store) as client, aclosing(client.follow_batches()) as batches:
                    assert [len(await anext(batches)) for _ in range(2)] == [2, 2]
                    assert calls == [[1, 2]]

    run(test())


def test_a_hook_that_commits_is_refused_and_two_followers_of_one_cursor_notice() -> None:
    with Store(on_apply=lambda connection, _: connection.commit()) as store:
        with pytest.raises(Usage, match="must not commit"):
            store.cursor("u", "p", "s").apply([{"committed_id": 1}], 1)
        store.on_apply = None
        mine, theirs = store.cursor("u", "p", "t"), store.cursor("u/", "p", "t")
        mine.apply([], 5)
        with pytest.raises(CursorMoved):
            theirs.apply([], 6)
        assert store.cursor("u", "p", "t").position == 5


def test_a_cursor_from_the_future_raises_or_starts_over(tmp_path: Path) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            for _ in range(3):
                hub.commit("a")
            with Store(tmp_path / "s.db") as store:
                store.cursor(hub.url, "demo", "null").apply([], 9)
            async with live(hub, tmp_path / "s.db") as client:
                with pytest.raises(CursorAhead) as ahead:
                    await positions(client, 1)
                assert (ahead.value.cursor, ahead.value.newest) == (9, 3)
                assert await positions(client, 3, on_future_cursor="resync") == [1, 2, 3]

    run(test())


def test_pruned_history_is_never_skipped_silently() -> None:
    async def test() -> None:
        said: list[Status] = []
        async with FakeHub() as hub, live(hub, on_status=said.append) as client:
            for _ in range(4):
                hub.commit("a")
            hub.pruned_through = 2
            with pytest.raises(HistoryPruned) as pruned:
                await positions(client, 1)
            assert (pruned.value.cursor, pruned.value.pruned_through) == (0, 2)
            assert await positions(client, 2, since=2, subscription="late") == [3, 4]
            assert "pruned" not in {status.state for status in said}
            assert await positions(client, 2, on_pruned="continue") == [3, 4]
            assert "pruned" in {status.state for status in said}

    run(test())


def test_a_slow_consumer_loses_its_buffer_and_no_event() -> None:
    async def test() -> None:
        async with FakeHub() as hub, live(hub, buffered_events=3) as client:
            hub.commit("a")
            events = client.follow(["a"])
            seen = [(await anext(events))["committed_id"]]
            for _ in range(20):
                await hub.publish("a")
            seen += [(await anext(events))["committed_id"] for _ in range(20)]
            assert seen == list(range(1, 22))
            await events.aclose()

    run(test())


def test_a_broadcast_that_was_never_sent_shows_in_a_whole_project() -> None:
    async def test() -> None:
        async with FakeHub() as hub, live(hub) as client:
            hub.commit("a")
            events = client.follow()
            seen = [(await anext(events))["committed_id"]]
            hub.commit("a")
            for peer in hub.peers:
                peer.queue.clear()
            await hub.publish("a")
            seen += [(await anext(events))["committed_id"] for _ in range(2)]
            assert seen == [1, 2, 3]
            await events.aclose()

    run(test())


def test_following_sees_what_the_same_client_submits() -> None:
    async def test() -> None:
        async with FakeHub() as hub, live(hub) as client:
            hub.commit("a")
            events = client.follow(["a"])
            await anext(events)
            result = await client.submit(item("mine"))
            assert (result["status"], result["committed_id"]) == ("committed", 2)
            assert (await anext(events))["id"] == "mine"
            await events.aclose()

    run(test())


@pytest.mark.parametrize("twist", TWISTS, ids=lambda twist: twist.__name__)
def test_whatever_happens_to_a_submit_it_is_committed_once(twist: Twist) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.twists["submit_events"].append(twist)
            async with live(hub, request_timeout=0.05) as client:
                results = await client.submit_many([item("x"), item("bad", "bad"), item("y")])
            assert [result["status"] for result in results] == ["committed", "rejected", "committed"]
            assert [event["id"] for event in hub.log] == ["x", "y"]
            assert all([sent["id"] for sent in p["events"]] == ["x", "bad", "y"] for p in hub.payloads("submit_events"))

    run(test())


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


def test_pending_submits_outlive_the_client_under_the_same_ids(tmp_path: Path) -> None:
    async def test() -> None:
        async with FakeHub() as hub:
            hub.twists["submit_events"].extend([silence])
            async with live(hub, tmp_path / "s.db") as client:
                sending = asyncio.create_task(client.submit_many([item("x"), item("y")]))
                await hub.hears("submit_events", 1)
            with pytest.raises(Lost, match="stays in the store"):
                await sending
            hub.twists["submit_events"].extend([drop, answer_and_drop])
            async with live(hub, tmp_path / "s.db"):
                await hub.hears("submit_events", 2)
            async with live(hub, tmp_path / "s.db") as client:
                assert [result["id"] for result in await client.flush()] == ["x", "y"]
                assert await client.flush() == []
            sent = [[entry["id"] for entry in payload["events"]] for payload in hub.payloads("submit_events")]
            assert len(sent) >= 3
            assert all(ids == ["x", "y"] for ids in sent)
            assert [event["id"] for event in hub.log] == ["x", "y"]

    run(test())


def test_a_cancelled_wait_does_not_cancel_the_submit() -> None:
    async def test() -> None:
        async with FakeHub() as hub, live(hub) as client:
            sending = asyncio.create_task(client.submit(item("x")))
            await asyncio.sleep(0)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            again = await client.submit(item("x"))
            assert again["committed_id"] == 1
            with pytest.raises(Usage, match="not JSON"):
                await client.submit(item("z", n=float("nan")))

    run(test())


def test_messages_stay_within_a_hundred_items_and_120_kb() -> None:
    async def test() -> None:
        sizes: list[tuple[int, int]] = []

        async def measure(_: Peer, message: Json, answer: Answer) -> None:
            from millrace_client.sync.protocol import compact

            if message["type"] == "submit_events":
                sizes.append((len(message["payload"]["events"]), len(compact(message).encode())))
            await answer()

        async with FakeHub() as hub, live(hub) as client:
            hub.every = measure
            many = [item(f"s{n}") for n in range(250)] + [item(f"b{n}", text="ä" * 20_000) for n in range(7)]
            results = await client.submit_many(many)
            assert [result["id"] for result in results] == [entry["id"] for entry in many]
            assert [event["id"] for event in hub.log] == [entry["id"] for entry in many]
            assert sum(items for items, _ in sizes) == 257
            assert max(items for items, _ in sizes) == 100
            assert 40_000 < max(size for _, size in sizes) <= 120_000
            with pytest.raises(Usage, match="a message takes"):
                await client.submit(item("huge", text="x" * 120_000))
            with pytest.raises(Usage, match="non-empty"):
                await client.submit(item(""))

    run(test())


def test_a_message_the_hub_refuses_is_taken_apart_until_the_culprit_is_found() -> None:
    async def test() -> None:
        async def refuse_p(peer: Peer, message: Json, answer: Answer) -> None:
            if any(entry["id"] == "p" for entry in message["payload"].get("events", [])):
                await peer.error("bad_request", message["msg_id"])
            else:
                await answer()

        async with FakeHub() as hub, live(hub) as client:
            hub.every = refuse_p
            sending = [asyncio.create_task(client.submit(item(name))) for name in ("x", "p", "y")]
            done = await asyncio.gather(*sending, return_exceptions=True)
            assert isinstance(done[1], Refused)
            assert [event["id"] for event in hub.log] == ["x", "y"]
            assert await client.flush() == []

    run(test())


def test_an_id_that_waits_cannot_be_reused_for_something_else() -> None:
    with Store() as store:
        outbox = store.outbox("u", "p")
        outbox.add([item("x", n=1)])
        outbox.add([item("x", n=1)])
        with pytest.raises(Usage, match="other content"):
            outbox.add([item("w"), item("x", n=2)])
        assert outbox.ids() == ["x"]
        assert store.outbox("u", "other").ids() == []


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
            hub.twists["sync"].extend([_honest, expire])
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
        async with FakeHub() as hub, live(hub, heartbeat=0.01, request_timeout=0.05) as client:
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
        async with Live("http://127.0.0.1:1", "demo", "T", client_id="C1") as client:
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
        async with FakeHub() as hub, live(hub, request_timeout=0.05, connect_timeout=0.05) as client:
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


class Chaos:
    """Everything the contract allows, at every message and between them."""

    def __init__(self, hub: FakeHub, chance: random.Random) -> None:
        self.hub, self.chance = hub, chance

    async def __call__(self, peer: Peer, message: Json, answer: Answer) -> None:
        await self._stir(peer)
        if message["type"] != "disconnect" and self.chance.random() < 0.15:
            twist = self.chance.choice([drop, answer_and_drop, answer_and_close, server_error, slow_down, nonsense])
            await twist(peer, message, answer)
        else:
            await answer()
        await self._stir(peer)

    async def between(self) -> None:
        while True:
            for peer in list(self.hub.peers):
                with suppress(ConnectionClosed):
                    await self._stir(peer)
                if self.chance.random() < 0.02:
                    peer.drop()
            await asyncio.sleep(0.001)

    async def _stir(self, peer: Peer) -> None:
        if self.chance.random() < 0.4:
            self.hub.commit(*self.chance.sample("abc", self.chance.randrange(1, 3)))
        await peer.deliver(self.chance.randrange(4))
        if peer.sent and self.chance.random() < 0.3:
            await peer.say("event_broadcast", self.chance.choice(peer.sent))


def _remember(connection: sqlite3.Connection, events: Sequence[Json]) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS seen (position INTEGER)")
    connection.executemany("INSERT INTO seen VALUES (?)", [(event["committed_id"],) for event in events])


@pytest.mark.parametrize("seed", range(25))
def test_in_any_history_the_contract_allows_nothing_is_lost_repeated_or_misplaced(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    partitions = chance.choice([None, ["a"], ["a", "b"]])
    hub = FakeHub(page_size=chance.randrange(1, 5))
    mine: list[str] = []
    seen: list[int] = []

    async def follow(client: Live, until: Callable[[Json], bool]) -> None:
        async with aclosing(client.follow(partitions)) as events:
            async for event in events:
                seen.append(event["committed_id"])
                if until(event):
                    return

    async def a_life(store: Store) -> None:
        """Submit, follow for a while, and die with submits under way."""
        left = chance.randrange(5, 40)
        ids = [f"mine-{len(mine) + number}" for number in range(3)]
        mine.extend(ids)
        async with live(hub, store, buffered_events=chance.choice([1, 3, 100])) as client:
            sending = asyncio.create_task(client.submit_many([item(name) for name in ids]))
            enough = count(1)
            await follow(client, lambda _: next(enough) == left)
        with suppress(Lost):
            await sending

    async def test() -> None:
        async with hub:
            chaos = Chaos(hub, chance)
            hub.every, hub.prompt = chaos, False
            stirring = asyncio.create_task(chaos.between())
            for _ in range(3):
                with Store(tmp_path / "s.db", on_apply=_remember) as store:
                    await a_life(store)
            stirring.cancel()
            hub.every, hub.prompt = None, True
            with Store(tmp_path / "s.db", on_apply=_remember) as store:
                async with live(hub, store) as client:
                    await client.flush()
                    hub.commit("a", event_id="end")
                    await follow(client, lambda event: event["id"] == "end")
                kept = [position for (position,) in store.connection.execute("SELECT position FROM seen")]
        wanted = [e["committed_id"] for e in hub.log if partitions is None or set(partitions) & set(e["partitions"])]
        # What was stored with the cursor is there once. What was only seen may come again at the start of a life.
        assert kept == wanted[:-1]
        assert list(dict.fromkeys(seen)) == wanted
        assert len(seen) <= len(wanted) + 3
        assert sorted(e["id"] for e in hub.log if e["id"].startswith("mine")) == sorted(mine)

    run(test())
