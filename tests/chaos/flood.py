"""One tenant floods: single events into many projects, as fast as it may, without waiting for anybody."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx

from tests.chaos.doors import submitted, sync_item
from tests.chaos.history import Answer, History
from tests.chaos.plan import Plan
from tests.chaos.tenants import FLOODED, Tenant


@contextmanager
def flood(history: History, tenant: Tenant, plan: Plan, rate: float, seed: int) -> Iterator[None]:
    """Until the block ends. A request that fails is not sent again."""
    clients = plan.flood_clients
    over = threading.Event()

    def pour(number: int) -> None:
        rng = random.Random(f"{seed}-{number}")
        with httpx.Client(base_url=tenant.hub.http_url, timeout=30) as http:
            count = 0
            while not over.wait(rng.uniform(0, 2 * clients / rate)):
                count += 1
                project = f"{FLOODED}{rng.randrange(plan.flood_projects)}"
                _send(history, tenant, http, project, f"{seed}-{number}-{count}")

    with ThreadPoolExecutor(clients) as pool:
        pouring = [pool.submit(pour, number) for number in range(clients)]
        try:
            yield
        finally:
            over.set()
        for one in pouring:
            one.result()


def _send(history: History, tenant: Tenant, http: httpx.Client, project: str, id_: str) -> None:
    history.count("flooding requests")
    try:
        response = http.post(
            f"/v1/projects/{project}/submit_events",
            json={"events": [sync_item(id_, tenant.name)]},
            headers=tenant.headers(project),
        )
    except httpx.TransportError:
        return
    if response.status_code == httpx.codes.OK:
        told = [submitted(result) for result in response.json()["results"]]
        ledger = tenant.ledger("sync", project)
        history.answered("flood", [Answer(ledger, *one) for one in told if one is not None])
