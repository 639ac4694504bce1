"""Names that nothing new may have, at every door. They are refused, and harm nobody."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from tests.chaos.doors import DOORS, Json
from tests.chaos.history import History
from tests.chaos.tenants import Tenant

NAMES = ("poison\uffff", "poison\x00", "poison#", "poison%2F", "poison?", "poison\u202e", "p" * 129)
SURROGATE = "poison\ud800"
"""Only a token can carry it this far: a path and a body are UTF-8."""


@dataclass(frozen=True)
class Dose:
    """One request with a bad name in it."""

    path: str
    body: Json
    method: str = "POST"
    claims: Mapping[str, Any] = field(default_factory=dict)

    def taken(self, tenant: Tenant, http: httpx.Client) -> bool | None:
        """Whether the hub took it; None if it gave no answer that says so."""
        try:
            response = http.request(self.method, self.path, json=self.body, headers=tenant.headers(**self.claims))
        except httpx.TransportError:
            return None
        if response.is_success:
            return True
        refused = response.is_client_error and response.status_code != httpx.codes.TOO_MANY_REQUESTS
        return False if refused else None


def doses(tenant: Tenant) -> list[Dose]:
    submit, publish, emit, record, ingest = DOORS

    def body(door: Any) -> Json:
        return {"events": [door.event("poison", tenant.name)]}

    made = []
    for name in NAMES:
        part = quote(name, safe="")
        session = publish.event("poison", tenant.name)
        made += [
            Dose(f"/v1/projects/{part}/submit_events", body(submit), claims={"projects": [name]}),
            Dose(publish.path, {**session, "sessionId": name}),
            Dose(f"/v1/runtimes/{part}/negotiate", {"supported_contract_versions": [2]}),
            Dose(f"/v1/runtimes/rt/streams/{part}/events", body(emit)),
            Dose(f"/v1/catalog/{part}/events", body(record)),
            Dose(ingest.path, body(ingest), claims={"team_slug": name}),
            Dose(submit.path, body(submit), claims={"tenant": f"{tenant.name}{name}"}),
            Dose(f"/v1/targets/{part}", {"type": "stub", "sources": [{"contract": "delivery", "scope": "*"}]}, "PUT"),
        ]
    for claim in ("tenant", "client_id", "team_slug"):
        made.append(Dose(submit.path, body(submit), claims={claim: SURROGATE}))
    return made


@dataclass
class Poisoner:
    """Sends one after the other, again and again, from all tenants."""

    history: History
    tenants: list[Tenant]
    rng: random.Random
    pause: float

    def __call__(self, over: threading.Event) -> None:
        with httpx.Client(base_url=self.tenants[0].hub.http_url, timeout=30) as http:
            while not over.wait(self.rng.uniform(0, 2 * self.pause)):
                tenant = self.rng.choice(self.tenants)
                self._give(self.rng.choice(doses(tenant)), tenant, http)

    def every_one(self, seconds: float) -> list[Dose]:
        """Each once more, now that nothing is broken. Returns those to which there was no answer."""
        deadline = time.monotonic() + seconds
        left = doses(self.tenants[0])
        with httpx.Client(base_url=self.tenants[0].hub.http_url, timeout=30) as http:
            while left and time.monotonic() < deadline:
                left = [dose for dose in left if self._give(dose, self.tenants[0], http) is None]
        return left

    def _give(self, dose: Dose, tenant: Tenant, http: httpx.Client) -> bool | None:
        taken = dose.taken(tenant, http)
        self.history.count({True: "poison taken", False: "poison refused", None: "poison without an answer"}[taken])
        if taken:
            self.history.accepted.append(f"{dose.method} {dose.path} {dose.claims}")
        return taken
