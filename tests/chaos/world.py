"""All that takes part in a run: tenants, their targets, their followers."""

from __future__ import annotations

import random
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from tests.chaos.history import History
from tests.chaos.live import Follower, Loop
from tests.chaos.plan import FLOODER, MEASURED, OTHER, Plan
from tests.chaos.storage import Storage
from tests.chaos.targets import Desk, open_desks
from tests.chaos.tenants import RUNTIME, Tenant
from tests.e2e.conftest import Hub


@dataclass(frozen=True)
class World:
    hub: Hub
    plan: Plan
    history: History
    tenants: Mapping[str, Tenant]
    storage: Storage
    desks: list[Desk]
    followers: list[Follower]
    loop: Loop

    def desk(self, tenant: str, name: str) -> Desk:
        (found,) = (desk for desk in self.desks if desk.tenant is self.tenants[tenant] and desk.name == name)
        return found

    def follower(self, tenant: str) -> Follower:
        (found,) = (follower for follower in self.followers if follower.tenant is self.tenants[tenant])
        return found

    def rng(self, name: str) -> random.Random:
        return random.Random(f"{self.plan.seed}-{name}")


def say(line: str) -> None:
    sys.stderr.write(f"chaos: {line}\n")
    sys.stderr.flush()


@contextmanager
def made(hub: Hub, plan: Plan) -> Iterator[World]:
    """Tenants that nobody has seen before; everybody is connected, and nothing was sent yet."""
    run = uuid.uuid4().hex[:8]
    tenants = {letter: Tenant(hub, f"chaos{run}-{letter}") for letter in (FLOODER, MEASURED, OTHER)}
    history = History()
    storage = Storage(hub, [tenant.name for tenant in tenants.values()])
    everybody, rng = list(tenants.values()), random.Random(plan.seed)
    for tenant in everybody:
        body = {"supported_contract_versions": [2]}
        response = hub.http.post(f"/v1/runtimes/{RUNTIME}/negotiate", json=body, headers=tenant.headers())
        assert response.status_code == httpx.codes.OK, response.text
    followers = [Follower(tenant) for tenant in everybody]
    opened = open_desks(history, everybody, tenants[FLOODER], plan.hanging_targets, rng)
    with opened as desks, Loop().running() as loop:
        for follower in followers:
            loop.start(follower())
        yield World(hub, plan, history, tenants, storage, desks, followers, loop)
