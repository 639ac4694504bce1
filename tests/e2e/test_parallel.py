"""Many clients at once, and functions that die: nothing is lost, nothing doubled."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from tests.e2e.api import item, sync_all
from tests.e2e.conftest import Hub
from tests.e2e.processes import function_processes

CLIENTS = 16
EVENTS = int(os.environ.get("MILLRACE_PARALLEL_EVENTS", "400"))
COPIES = 3
"""How many of the clients post each event."""
BATCH = 100
KILLS = 40
"""A new process takes a second or two to start: without an end to the killing nobody would get an answer."""


def post_until_answered(hub: Hub, http: httpx.Client, project: str, items: list[Any]) -> list[dict[str, Any]]:
    """As a client should: the same ids again after any failure."""
    for _ in range(60):
        try:
            response = http.post(
                f"/v1/projects/{project}/submit_events", json={"events": items}, headers=hub.headers(projects=[project])
            )
        except httpx.TransportError:
            continue
        if response.status_code == 200:
            results: list[dict[str, Any]] = response.json()["results"]
            return results
        assert response.status_code in (429, 500, 502, 503, 504), response.text
    raise AssertionError("no answer after 60 tries")


def shuffled_batches(client: int, ids: list[str]) -> list[list[str]]:
    mine = [id_ for number, id_ in enumerate(ids) if (number + client) % CLIENTS < COPIES]
    random.Random(client).shuffle(mine)
    return [mine[start : start + BATCH] for start in range(0, len(mine), BATCH)]


def run_clients(hub: Hub, project: str, ids: list[str]) -> list[dict[str, int]]:
    """Every client's own view: id → committed_id."""

    def client(number: int) -> dict[str, int]:
        seen: dict[str, int] = {}
        with httpx.Client(base_url=hub.http_url, timeout=60) as http:
            for batch in shuffled_batches(number, ids):
                for result in post_until_answered(hub, http, project, [item(id_, id_) for id_ in batch]):
                    assert result["status"] == "committed", result
                    seen[result["id"]] = result["committed_id"]
        return seen

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(client, range(CLIENTS)))


def assert_exactly_once(hub: Hub, project: str, ids: list[str], views: list[dict[str, int]]) -> None:
    events = sync_all(hub, project, limit=1000)
    assert [event["committed_id"] for event in events] == list(range(1, len(ids) + 1))
    positions = {event["id"]: event["committed_id"] for event in events}
    assert positions.keys() == set(ids)
    for view in views:
        assert all(positions[id_] == committed_id for id_, committed_id in view.items())
    assert set().union(*views) == set(ids)


def test_s5_sixteen_clients_with_overlapping_batches_commit_each_event_once(stack: Hub) -> None:
    ids = [f"e{number}" for number in range(EVENTS)]
    views = run_clients(stack, "parallel", ids)
    assert_exactly_once(stack, "parallel", ids, views)


@contextmanager
def a_killer(hub: Hub) -> Iterator[list[int]]:
    """Kills function processes at random moments until the block ends."""
    over, killed = threading.Event(), list[int]()

    def kill() -> None:
        rng = random.Random(7)
        while len(killed) < KILLS and not over.wait(rng.uniform(0.05, 0.6)):
            alive = function_processes(hub)
            if alive:
                victim = rng.choice(alive)
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def test_s10_killing_functions_at_any_moment_loses_and_doubles_nothing(stack: Hub) -> None:
    ids = [f"k{number}" for number in range(EVENTS // 2)]
    with a_killer(stack) as killed:
        views = run_clients(stack, "killed", ids)
    assert killed
    assert_exactly_once(stack, "killed", ids, views)
