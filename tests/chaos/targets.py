"""Targets of the tenants: receivers on this machine, some of them moody, some that hang while the flood is measured."""

from __future__ import annotations

import base64
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from millrace.delivery.domain.sources import Source, heard
from millrace.delivery.wiring import REQUEST_SECONDS
from millrace.ledger.domain.names import split_key
from tests.chaos.history import History, Post, tenants_in
from tests.chaos.tenants import DOMAIN, FLOODED, PROJECT, RUNTIME, SESSION, STREAM, TEAM, Tenant
from tests.e2e.receivers import Posted, Reply, accept, receiver

SECRET = "whsec_" + base64.b64encode(b"c" * 32).decode()
EVERYTHING = (
    Source("sync", PROJECT),
    Source("realtime", SESSION),
    Source("streams", f"{RUNTIME}/{STREAM}"),
    Source("catalog", DOMAIN),
    Source("delivery", TEAM),
)
STEADY, MOODY = "steady", "moody"
FLOOD = (Source("sync", f"{FLOODED}*"),)
LONGEST_HANG = REQUEST_SECONDS / 2
"""Shorter than the hub's patience with a request: whoever hangs is slow, and knows what it took."""


@dataclass
class Desk:
    """The receiver of one target: keeps what it was sent, and has its moods."""

    tenant: Tenant
    name: str
    sources: tuple[Source, ...]
    history: History
    rng: random.Random
    moody: bool = False
    """Slow at times, and fails at times."""
    posts: list[Post] = field(default_factory=list)
    free: threading.Event = field(default_factory=threading.Event)
    """While it is not set, every request hangs."""
    at_work: int = 0
    _failed: bool = False

    def hears(self, ledger: str) -> bool:
        return split_key(ledger)[1] == self.tenant.name and heard(self.sources, ledger)

    def __call__(self, posted: Posted) -> Reply:
        at, events = time.monotonic(), posted.events
        self.at_work += 1
        try:
            taken = self._decide()
        finally:
            self.at_work -= 1
        ids = tuple(event["event_id"] for event in events)
        self.posts.append(Post(at, ids, tenants_in(events), taken))
        return accept(posted) if taken else (503, {})

    def _decide(self) -> bool:
        """Never fails twice in a row: three times in a row, and the hub would leave it alone for long."""
        self.free.wait(LONGEST_HANG)
        if not self.moody:
            return True
        mood = self.rng.random()
        if mood < 0.4:
            time.sleep(self.rng.uniform(0.1, 1))
        self._failed = not self._failed and mood > 0.95
        if self._failed:
            self.history.fault("failures of a target")
        return not self._failed

    def register(self, url: str) -> None:
        body = {
            "type": "external",
            "url": url,
            "signing_secret": SECRET,
            "sources": [{"contract": source.contract, "scope": source.scope} for source in self.sources],
        }
        headers = self.tenant.headers(PROJECT, f"{FLOODED}*")
        response = httpx.put(self._url(), json=body, headers=headers, timeout=60)
        assert response.status_code == httpx.codes.OK, response.text

    def remove(self) -> None:
        httpx.delete(self._url(), headers=self.tenant.headers(PROJECT, f"{FLOODED}*"), timeout=60)

    def deliveries(self) -> list[dict[str, Any]]:
        """All of them, as the hub's operator sees them."""
        listed: list[dict[str, Any]] = []
        after = ""
        while True:
            page = self._page(after)
            listed += page["deliveries"]
            if not page["next_after"]:
                return listed
            after = page["next_after"]

    def _page(self, after: str) -> dict[str, Any]:
        headers = self.tenant.headers(PROJECT, f"{FLOODED}*")
        response = httpx.get(
            f"{self._url()}/deliveries", params={"max": 500, "after": after}, headers=headers, timeout=60
        )
        assert response.status_code == httpx.codes.OK, response.text
        page: dict[str, Any] = response.json()
        return page

    def _url(self) -> str:
        return f"{self.tenant.hub.http_url}/v1/targets/{self.name}"


@contextmanager
def open_desks(
    history: History, tenants: Sequence[Tenant], flooder: Tenant, hanging: int, rng: random.Random
) -> Iterator[list[Desk]]:
    """Two targets each, which hear of everything; and for the flooder some that hear of its flood alone."""
    desks = [
        Desk(tenant, name, EVERYTHING, history, random.Random(rng.random()))
        for tenant in tenants
        for name in (STEADY, MOODY)
    ]
    desks += [Desk(flooder, f"hanging-{n}", FLOOD, history, random.Random(rng.random())) for n in range(hanging)]
    with ExitStack() as open_:
        for desk in desks:
            desk.free.set()
            desk.register(open_.enter_context(receiver(desk)).url)
            open_.callback(desk.remove)
        yield desks
