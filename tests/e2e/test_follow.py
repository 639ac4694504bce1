"""S11, S17: followers and submitters in a storm of disconnects, killed fan-outs and repeated doorbells."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import threading
from contextlib import suppress
from typing import Any

import pytest

from millrace_client.sync.live import Live
from millrace_client.sync.settings import Settings
from tests.e2e.api import item, sync_all
from tests.e2e.conftest import Hub
from tests.e2e.processes import function_processes

SUBMITTERS = 20
EVENTS = int(os.environ.get("MILLRACE_STORM_EVENTS", "60"))
SEEDS = [int(seed) for seed in os.environ.get("MILLRACE_STORM_SEEDS", "1,2").split(",")]
DEADLINE = 150
QUICK = Settings(first_pause=0.05, longest_pause=0.5)


async def submitter(hub: Hub, project: str, number: int, seed: int) -> None:
    """Submits its share, often leaving in the middle and coming back with the same store."""
    rng = random.Random(f"{seed}-{number}")
    mine = [item(f"{number}-{n}", n) for n in range(number, EVENTS, SUBMITTERS)]
    while mine:
        async with Live(hub.ws_url, project, hub.token(projects=[project]), store=":memory:", settings=QUICK) as live:
            some = mine[: rng.randint(1, 4)]
            try:
                async with asyncio.timeout(rng.choice((0.2, 1, 30))):
                    results = await live.submit_many(some)
            except TimeoutError:
                continue
            assert [result["status"] for result in results] == ["committed"] * len(some)
            mine = mine[len(some) :]


async def follower(hub: Hub, project: str, seed: int, expected: int, folder: Any) -> list[dict[str, Any]]:
    """Follows to the end, dropping its connection now and then; its store carries it over."""
    rng = random.Random(seed)
    seen: list[dict[str, Any]] = []
    while len(seen) < expected:
        token = hub.token(projects=[project])
        async with Live(hub.ws_url, project, token, store=folder / f"follower-{seed}.db", settings=QUICK) as live:
            stay = rng.randint(5, 60)
            async for event in live.follow(limit=50):
                if seen and event["committed_id"] == seen[-1]["committed_id"]:
                    continue  # the one it was at when it left: at least once
                seen.append(event)
                stay -= 1
                if len(seen) == expected or stay == 0:
                    break
    return seen


def trouble(hub: Hub, project: str, over: threading.Event, seed: int) -> None:
    """Kills fan-outs and rings doorbells that nobody needs."""
    rng = random.Random(seed)
    functions = hub.client("lambda")
    record = {"dynamodb": {"Keys": {"b": {"S": f"sync#default#{project}#0"}, "f": {"N": "1"}}}, "eventName": "INSERT"}
    for _ in range(12):
        if over.wait(rng.uniform(0.3, 1.2)):
            return
        if rng.random() < 0.5:
            victims = function_processes(hub, hub.stack.functions["fan_out"])
            with suppress(ProcessLookupError):
                if victims:
                    os.kill(rng.choice(victims), signal.SIGKILL)
        else:
            event = json.dumps({"Records": [record]})
            functions.invoke(FunctionName=hub.stack.functions["fan_out"], InvocationType="Event", Payload=event)


@pytest.mark.parametrize("seed", SEEDS)
def test_followers_end_with_identical_complete_ordered_logs(stack: Hub, seed: int, tmp_path: Any) -> None:
    project = f"storm-{seed}"
    over = threading.Event()
    noise = threading.Thread(target=trouble, args=(stack, project, over, seed))

    async def storm() -> list[list[dict[str, Any]]]:
        async with asyncio.timeout(DEADLINE):
            followers = [asyncio.create_task(follower(stack, project, 10 + n, EVENTS, tmp_path)) for n in range(2)]
            await asyncio.gather(*(submitter(stack, project, n, seed) for n in range(SUBMITTERS)))
            return list(await asyncio.gather(*followers))

    noise.start()
    try:
        logs = asyncio.run(storm())
    finally:
        over.set()
        noise.join()
    truth = sync_all(stack, project, limit=1000)
    assert [event["committed_id"] for event in truth] == list(range(1, EVENTS + 1))
    for log in logs:
        assert log == truth


def test_s11_nothing_falls_between_the_last_page_and_the_first_broadcast(stack: Hub) -> None:
    """Commits go on all the time while clients, one after the other, sync and go live."""
    project, clients, total = "seamless", 6, 2 * EVENTS

    async def writer() -> None:
        async with Live(
            stack.ws_url, project, stack.token(projects=[project]), store=":memory:", settings=QUICK
        ) as live:
            for start in range(0, total, 5):
                await live.submit_many([item(f"e{n}", n) for n in range(start, start + 5)])

    async def reader(delay: float) -> list[int]:
        await asyncio.sleep(delay)
        async with Live(
            stack.ws_url, project, stack.token(projects=[project]), store=":memory:", settings=QUICK
        ) as live:
            return [event["committed_id"] async for event in live.follow(limit=50, most=total)]

    async def run() -> list[list[int]]:
        async with asyncio.timeout(DEADLINE):
            readers = [asyncio.create_task(reader(0.4 * n)) for n in range(clients)]
            await writer()
            return list(await asyncio.gather(*readers))

    assert asyncio.run(run()) == [list(range(1, total + 1))] * clients
