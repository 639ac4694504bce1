"""A whole hub whose deliver function is killed in the middle of a request: another goes on in seconds."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

from millrace.delivery.domain.drains import HIDDEN_MS
from tests.e2e.conftest import Hub
from tests.e2e.processes import function_processes
from tests.e2e.receivers import Posted, Reply, accept, receiver
from tests.e2e.test_delivery_hub import Tenant

SOON = HIDDEN_MS / 1000 + 15
"""The lease and a beat, with time for the emulator to start another process."""


def kill_deliver(hub: Hub) -> int:
    killed = function_processes(hub, hub.stack.functions["deliver"])
    for process in killed:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return len(killed)


def drain_of(tenant: Tenant) -> Any:
    [target] = tenant.get("/v1/delivery/status").json()["delivery_targets"]
    return target


@pytest.mark.slow
@pytest.mark.parametrize("by_hand", [False, True], ids=["by itself", "by hand"])
def test_a_target_whose_drain_is_killed_is_served_again_in_seconds(stack: Hub, by_hand: bool) -> None:
    """D6: status shows who drains and that it died; only the request in doubt is sent again."""
    tenant, held = Tenant(stack), threading.Event()

    def hang(posted: Posted) -> Reply:
        if not held.is_set() and "e3" in [event["event_id"] for event in posted.events]:
            held.wait(30)
        return accept(posted)

    with receiver(hang) as one:
        tenant.put("a", url=one.url, mode="webhook")
        tenant.ingest("e1", "e2", "e3", "e4")
        tenant.until(lambda: "e3" in [event["event_id"] for posted in one.posts for event in posted.events])
        seen = drain_of(tenant)
        assert seen["has_due"] is True
        assert seen["stuck"] is None
        assert seen["drain"]["since_ms"] <= time.time() * 1000 < seen["drain"]["until_ms"]
        assert kill_deliver(stack)
        died = time.monotonic()
        held.set()
        if by_hand:
            assert tenant.post("/v1/targets/a/drain").json() == {"asked": True}
        tenant.until(lambda: len(tenant.statuses("a")) == 4, SOON)
        assert time.monotonic() - died < SOON
        assert one.ids == ["e1", "e2", "e3", "e3", "e4"]
        tenant.until(lambda: drain_of(tenant)["drain"] is None)
        assert drain_of(tenant)["has_due"] is False
