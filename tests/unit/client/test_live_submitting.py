"""S17: what the live client submits is committed once, whatever the hub does, and nothing is forgotten."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from millrace_client.errors import Refused, Usage
from millrace_client.sync.live import Live
from millrace_client.sync.protocol import Lost
from millrace_client.sync.settings import Settings
from millrace_client.sync.store import Store
from millrace_client.tokens import Grant, sign
from tests.unit.client.fake_hub import Answer, FakeHub, Json, Peer, Twist
from tests.unit.client.live_clients import (
    TWISTS,
    Naps,
    answer_and_drop,
    drop,
    item,
    live,
    run,
    silence,
)


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


def test_without_a_store_of_your_own_pending_submits_and_cursors_are_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S17: what the client is told nothing about survives it too; and it stays with the client whose it is."""
    monkeypatch.setenv("MILLRACE_HOME", str(tmp_path / "home"))

    def client(hub: FakeHub, **who: Any) -> Live:
        return Live(hub.url, "demo", who.pop("token", "T"), settings=Settings(sleep=Naps()), **who)

    async def test() -> None:
        async with FakeHub() as hub:
            hub.commit("a", event_id="first")
            hub.twists["submit_events"].append(silence)
            async with client(hub, client_id="C1") as live:
                assert [event["id"] async for event in live.follow(most=1)] == ["first"]
                sending = asyncio.create_task(live.submit(item("x")))
                await hub.hears("submit_events", 1)
            with pytest.raises(Lost):
                await sending
            async with client(hub, client_id="C2") as live:
                assert await live.flush() == [], "another client's events are not its own to send"
                assert [event["id"] async for event in live.follow(most=1)] == ["first"]
            token = sign(Grant("C1", ["demo"]), "s" * 32)
            async with client(hub, token=lambda: token) as live:
                assert [result["id"] for result in await live.flush()] == ["x"]
                assert [event["id"] async for event in live.follow(most=1)] == ["x"], "after the one it has had"

    run(test())
    folder = tmp_path / "home" / "stores"
    assert folder.stat().st_mode & 0o077 == 0
    assert len(list(folder.glob("*.db"))) == 2


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MILLRACE_HOME", str(tmp_path / "file"))

    async def test() -> None:
        async with FakeHub() as hub:
            with pytest.raises(Usage, match="Name another place with `store`"):
                async with Live(hub.url, "demo", "T", client_id="C1"):
                    pass

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
    with Store(":memory:") as store:
        outbox = store.outbox("u", "p")
        outbox.add([item("x", n=1)])
        outbox.add([item("x", n=1)])
        with pytest.raises(Usage, match="other content"):
            outbox.add([item("w"), item("x", n=2)])
        assert outbox.ids() == ["x"]
        assert store.outbox("u", "other").ids() == []
