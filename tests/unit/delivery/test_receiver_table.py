"""D7: the document's table of receivers, where the three differ and where they must not."""

from __future__ import annotations

import pytest

from millrace.delivery.domain.addresses import Reach
from millrace.delivery.domain.signing import new_secret
from millrace.delivery.domain.targets import Blocked
from millrace.delivery.ports.deliveries import DeliveryReceiver
from millrace.delivery.receivers.kind import Gate, Parts
from millrace.delivery.receivers.outbound import Outbound
from millrace.delivery.receivers.registry import RECEIVERS
from tests.support.local_target import local_target, results
from tests.support.worlds import World, in_memory

NAMES = ("teamspace", "external", "stub")


def receiver(name: str, url: str, world: World, login_gate: Gate = lambda: None) -> DeliveryReceiver:
    outbound = Outbound(Reach(loopback=True), connect_s=5, total_s=30)
    signing = [new_secret(b"s" * 32)]
    parts = Parts(url, outbound, world.clock, auth="token", signing=signing, login_gate=login_gate)
    return RECEIVERS[name].build(parts)


def test_the_gates_of_a_login_hold_up_the_teamspace_alone() -> None:
    world = in_memory()
    closed = (Blocked.MISSING_AUTH, "no token")
    gates = {name: receiver(name, "http://127.0.0.1:1", world, lambda: closed).gate() for name in NAMES}
    assert gates == {"teamspace": closed, "external": None, "stub": None}


def test_an_external_target_needs_an_endpoint_and_a_stub_does_not() -> None:
    world = in_memory()
    blocked = receiver("external", "", world).gate()
    assert blocked is not None
    assert blocked[0] is Blocked.ENDPOINT_MISSING
    assert receiver("stub", "", world).gate() is None


@pytest.mark.parametrize("name", NAMES)
def test_each_of_the_six_results_leaves_the_same_row_whatever_the_receiver(name: str) -> None:
    world = in_memory()
    said = {
        "e1": "success",
        "e2": "duplicate",
        "e3": "pending",
        "e4": "rejected",
        "e5": "terminal_failed",
        "e6": "terminal-failed",
    }
    world.capture(*said, "e7")
    with local_target(results(**said)) as target:
        world.drain(receiver(name, target.url, world))
    assert world.statuses() == {**said, "e6": "terminal_failed", "e7": "transient"}
