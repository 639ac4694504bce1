"""Readers at every door that reads, and one that polls all through the storm."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.chaos.evidence import View
from tests.chaos.history import Sight, tenants_in
from tests.chaos.tenants import PROJECT, RUNTIME, SESSION, STREAM, Tenant

TRIES = 60
STREAM_PATH = f"/v1/runtimes/{RUNTIME}/streams/{STREAM}/events"


def views(tenant: Tenant) -> Iterator[View]:
    """A whole project, the same by its partition's index, a session, a stream."""
    with httpx.Client(base_url=tenant.hub.http_url, timeout=60) as http:
        project = tenant.ledger("sync", PROJECT)
        yield View("sync", tenant.name, project, list(_synced(tenant, http)))
        yield View("sync of a partition", tenant.name, project, list(_synced(tenant, http, partitions=["p1"])))
        yield View("replay", tenant.name, tenant.ledger("realtime", SESSION), list(_replayed(tenant, http)))
        yield View("poll", tenant.name, tenant.ledger("streams", RUNTIME, STREAM), list(_polled(tenant, http)))


def _synced(tenant: Tenant, http: httpx.Client, **chosen: Any) -> Iterator[Sight]:
    body = {"since_committed_id": 0, "limit": 500, **chosen}
    while True:
        page = _asked(tenant, http, "POST", f"/v1/projects/{PROJECT}/sync", json=body)
        yield from (_sight(event, "committed_id", "id") for event in page["events"])
        if not page["has_more"]:
            return
        going_on = {"since_committed_id": page["next_since_committed_id"]}
        body = {**body, **going_on, "sync_to_committed_id": page["sync_to_committed_id"]}


def _replayed(tenant: Tenant, http: httpx.Client) -> Iterator[Sight]:
    after, has_more = 0, True
    while has_more:
        query = {"afterSequence": after, "limit": 500}
        page = _asked(tenant, http, "GET", f"/v1/realtime/sessions/{SESSION}/events", params=query)
        for event in page["events"]:
            yield _sight(event, "sequence", "eventId")
            after = event["sequence"]
        has_more = page["hasMore"]


def _polled(tenant: Tenant, http: httpx.Client) -> Iterator[Sight]:
    cursor: dict[str, str] = {}
    while True:
        batch = _asked(tenant, http, "GET", STREAM_PATH, params=cursor)
        yield from (_sight(event, "seq_no", "event_id") for event in batch["events"])
        if not batch["events"]:
            return
        cursor = {"cursor": batch["next_cursor"]}


def _asked(tenant: Tenant, http: httpx.Client, method: str, path: str, **request: Any) -> Any:
    """Functions that were killed last may still have to start: a few times."""
    answer = ""
    for _ in range(TRIES):
        response = http.request(method, path, headers=tenant.headers(), **request)
        if response.status_code == httpx.codes.OK:
            return response.json()
        answer = f"{response.status_code} {response.text[:500]}"
        time.sleep(0.2)
    raise AssertionError(f"{path} answered {answer}")


def _sight(event: dict[str, Any], position: str, id_: str) -> Sight:
    return Sight(event[position], event[id_], tenants_in(event), time.monotonic())


@contextmanager
def polling(tenants: Sequence[Tenant]) -> Iterator[list[Poller]]:
    """A poller for each, until the block ends."""
    over, pollers = threading.Event(), [Poller(tenant) for tenant in tenants]
    with ThreadPoolExecutor(len(pollers)) as pool:
        for poller in pollers:
            pool.submit(poller, over)
        try:
            yield pollers
        finally:
            over.set()


@dataclass
class Poller:
    """Polls a tenant's stream from its start, cursor by cursor, whatever breaks meanwhile."""

    tenant: Tenant
    pause: float = 1
    seen: list[Sight] = field(default_factory=list)

    def __call__(self, over: threading.Event) -> None:
        cursor: dict[str, str] = {}
        with httpx.Client(base_url=self.tenant.hub.http_url, timeout=30) as http:
            while not over.wait(self.pause):
                try:
                    response = http.get(STREAM_PATH, params=cursor, headers=self.tenant.headers())
                except httpx.TransportError:
                    continue
                if response.status_code == httpx.codes.OK:
                    batch = response.json()
                    self.seen += [_sight(event, "seq_no", "event_id") for event in batch["events"]]
                    cursor = {"cursor": batch["next_cursor"]}
