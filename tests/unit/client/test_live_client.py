"""S17: the live client follows a hub that interleaves, repeats, drops and prunes, and loses nothing."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from itertools import count
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from millrace_client.errors import Usage
from millrace_client.sync.cursor_errors import CursorAhead, HistoryPruned
from millrace_client.sync.live import Live
from millrace_client.sync.protocol import Lost
from millrace_client.sync.settings import Status
from millrace_client.sync.store import CursorMoved, Store
from tests.unit.client.fake_hub import Answer, FakeHub, Json, Peer, Twist
from tests.unit.client.live_clients import (
    TWISTS,
    answer_and_close,
    answer_and_drop,
    drop,
    honest,
    item,
    live,
    nonsense,
    positions,
    run,
    server_error,
    slow_down,
)


async def broadcasts_around(peer: Peer, _: Json, answer: Answer) -> None:
    """New ones before and after the page, an old one, and one twice."""
    peer.hub.commit("a")
    await peer.deliver()
    await answer()
    new = peer.hub.commit("a")
    await peer.deliver()
    await peer.say("event_broadcast", new)
    await peer.say("event_broadcast", peer.hub.log[0])


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
            hub.twists["sync"].extend([honest] * place + [twist])
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


def test_a_client_waits_for_each_page_before_it_asks_for_the_next_and_acknowledges_none() -> None:
    """S17: nothing comes between a sync and its answer, and nothing but the next sync after it."""

    async def test() -> None:
        early: list[str | bytes] = []

        async def listen_first(peer: Peer, _: Json, answer: Answer) -> None:
            with suppress(TimeoutError):
                early.append(await asyncio.wait_for(peer.connection.recv(), 0.05))
            await answer()

        async with FakeHub(page_size=2) as hub:
            for _ in range(5):
                hub.commit("a")
            hub.twists["sync"].extend([listen_first] * 3)
            async with live(hub) as client:
                assert await positions(client, 5) == [1, 2, 3, 4, 5]
            assert early == []
            assert [message["type"] for message in hub.heard][:4] == ["connect", "sync", "sync", "sync"]
            assert [sync["since_committed_id"] for sync in hub.payloads("sync")] == [0, 2, 4]

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
        store = Store(":memory:", on_apply=lambda _, events: calls.append([event["committed_id"] for event in events]))
        async with FakeHub() as hub:
            for _ in range(4):
                hub.commit("a")
            with store:
                async with live(hub, store) as client, aclosing(client.follow_batches()) as batches:
                    assert [len(await anext(batches)) for _ in range(2)] == [2, 2]
                    assert calls == [[1, 2]]

    run(test())


def test_a_hook_that_commits_is_refused_and_two_followers_of_one_cursor_notice() -> None:
    with Store(":memory:", on_apply=lambda connection, _: connection.commit()) as store:
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
