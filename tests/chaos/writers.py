"""Clients that write over HTTP, and send the same again until they are answered."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import httpx

from tests.chaos.doors import SUBMIT, Door, Json
from tests.chaos.history import Answer, History
from tests.chaos.tenants import Tenant

TIMEOUT = 60
PASSING = frozenset({429, 500, 502, 503, 504})
AGAIN = 0.25
"""How often a client asks again for what it has been told."""


@dataclass
class Sender:
    """Sends batches of one tenant through one door. Use it from one thread."""

    history: History
    tenant: Tenant
    door: Door
    http: httpx.Client

    def send(self, ids: Sequence[str], gives_up: threading.Event) -> bool:
        """Until it is answered, or has given up: then nobody knows."""
        events = [self.door.event(id_, self.tenant.name) for id_ in ids]
        while not gives_up.is_set():
            try:
                response = self.http.post(self.door.path, json={"events": events}, headers=self.tenant.headers())
            except httpx.TransportError:
                self.history.count("requests without an answer")
                continue
            if response.status_code == httpx.codes.OK:
                self._note(response.json()["results"])
                return True
            if response.status_code not in PASSING:
                self.history.refused.append(f"{self.door.name}: {response.status_code} {response.text[:200]}")
                return True
            self.history.count(f"answered {response.status_code}")
            gives_up.wait(min(1.0, float(response.headers.get("Retry-After", 0.1))))
        return False

    def _note(self, results: Sequence[Json]) -> None:
        ledger = self.tenant.ledger(self.door.contract, *self.door.scope)
        told = [self.door.committed(result) for result in results]
        self.history.answered(self.door.name, [Answer(ledger, *one) for one in told if one is not None])
        bad = [result for result, one in zip(results, told, strict=True) if one is None]
        self.history.refused.extend(f"{self.door.name}: {result}" for result in bad)


@dataclass
class Writer:
    """Writes on and on, at its doors in turn, and now and then asks again for what it has been told."""

    history: History
    tenant: Tenant
    doors: Sequence[Door]
    batch: int
    pause: float
    """Between batches, on average."""
    rng: random.Random
    submitted: list[list[str]]
    """Batches that some client of the tenant was told are committed in its project."""

    def __call__(self, over: threading.Event, gives_up: threading.Event) -> None:
        number, told = 0, {door.name: list[list[str]]() for door in self.doors} | {SUBMIT.name: self.submitted}
        with httpx.Client(base_url=self.tenant.hub.http_url, timeout=TIMEOUT) as http:
            for door in cycle(self.doors):
                sender = Sender(self.history, self.tenant, door, http)
                ids = [f"{door.name}-{number + n}" for n in range(self.rng.randint(1, 2 * self.batch - 1))]
                number += len(ids)
                if not sender.send(ids, gives_up):
                    self.history.count("events in doubt", len(ids))
                    return
                told[door.name].append(ids)
                if self.rng.random() < AGAIN:
                    sender.send(self.rng.choice(told[door.name]), gives_up)
                if over.wait(self.rng.uniform(0, 2 * self.pause)):
                    return


def probe(history: History, tenant: Tenant, phase: str, count: int, pause: float) -> list[str]:
    """Single events, one after the other, each with the time at which it was first sent. Returns their ids."""
    never = threading.Event()
    ids = [f"probe-{phase}-{number}" for number in range(count)]
    with httpx.Client(base_url=tenant.hub.http_url, timeout=TIMEOUT) as http:
        sender = Sender(history, tenant, SUBMIT, http)
        for id_ in ids:
            history.sent[id_] = time.monotonic()
            sender.send([id_], never)
            time.sleep(max(0.0, history.sent[id_] + pause - time.monotonic()))
    return ids
