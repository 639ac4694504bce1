"""Every use case works in the tenant of its token, also where the table of rights cannot see it.

There, a request of another tenant is answered as if nothing were there. Here, both tenants have the same things under
the same names, and only those of the token's tenant may be read, changed or woken.
"""

from __future__ import annotations

from typing import Any

import pytest

from millrace.delivery.adapters.memory.drains import MemoryDrains, MemoryLine
from millrace.delivery.application.hub_status import HubStatus
from millrace.delivery.application.inspect_deliveries import InspectDeliveries
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.ports.deliveries import Found
from millrace.delivery.ports.targets import Counted, Listed, Position, Wake
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.names import join_key
from millrace.streams import wiring as streams_wiring
from millrace.streams.domain.errors import InvalidCursor
from tests.unit.delivery import test_hub_targets
from tests.unit.streams.hub import RUNTIME, StreamsHub

OURS, THEIRS = "ours", "theirs"


def operator(tenant: str) -> Identity:
    return Identity("O", tenant, frozenset({"*"}), ("*",), frozenset({"operator"}), "team")


@pytest.fixture
def targets() -> test_hub_targets.Hub:
    """Both tenants have a target `a`."""
    hub = test_hub_targets.Hub()
    for tenant in (OURS, THEIRS):
        hub.targets.put(operator(tenant), "a", test_hub_targets.body())
    hub.wakes.sent.clear()
    return hub


def test_a_drain_wakes_the_target_of_its_own_tenant(targets: test_hub_targets.Hub) -> None:
    targets.targets.drain(operator(OURS), "a")
    assert targets.wakes.sent == [Wake(OURS, "a", scan=True)]


def test_a_retry_wakes_the_target_of_its_own_tenant(targets: test_hub_targets.Hub) -> None:
    ledger = join_key("delivery", OURS, "team")

    def retry(key: str, event_id: str) -> Found:
        assert key == join_key(OURS, "a")
        return Found(key, ledger, 1, event_id, "", Delivery(Status.TERMINAL_FAILED, 1, 0, 0, 0))

    no_listing: Any = None
    retrying: Any = retry
    InspectDeliveries(targets.targets, no_listing, retrying, targets.wakes).retry(operator(OURS), "a", "e")
    assert targets.wakes.sent == [Wake(OURS, "a", (ledger,))]


class NothingListed:
    def page(self, target_id: str, status: Status | None, after: str, limit: int) -> Listed:
        return Listed((), None)

    def counts(self, target_id: str) -> dict[Status, int]:
        return {}

    def count_some(self, target_id: str, most_runs: int, status: Status | None = None) -> Counted:
        return Counted({}, complete=True)

    def get(self, target_id: str, event_id: str) -> Found | None:
        return None

    def at(self, target_id: str, ledger: str, position: int) -> Delivery | None:
        return None


def test_the_status_counts_what_former_targets_of_its_own_tenant_were_given(targets: test_hub_targets.Hub) -> None:
    """D11"""
    targets.targets.put(operator(THEIRS), "b", test_hub_targets.body())
    given = {(OURS, "a"): 3, (THEIRS, "a"): 5, (OURS, "b"): 7, (THEIRS, "b"): 11}
    for (tenant, target_id), delivered in given.items():
        targets.positions.positions[join_key(tenant, target_id), "ledger"] = Position(20, delivered)
        targets.targets.delete(operator(tenant), target_id)
    status = HubStatus(
        targets=targets.targets,
        listing=NothingListed(),
        positions=targets.positions,
        agenda=targets.agenda,
        drains=MemoryDrains(),
        line=MemoryLine(),
        log=targets.log,
        state=targets.state,
        heads=Heads(targets.clock),
        clock=targets.clock,
    )
    counts = {
        tenant: status(operator(tenant))["delivery_ledger"]["previous_target_delivered_count"]
        for tenant in (OURS, THEIRS)
    }
    assert counts == {OURS: 3, THEIRS: 5 + 11}


@pytest.fixture
def streams() -> StreamsHub:
    """Both tenants have negotiated for a runtime of the same name."""
    hub = StreamsHub()
    for tenant in (OURS, THEIRS):
        hub.negotiate(hub.identity(tenant=tenant), RUNTIME, {"supported_contract_versions": [2]})
    return hub


def test_a_revoked_grant_is_stored_in_its_own_tenant(streams: StreamsHub) -> None:
    """P4"""
    asked = {"reason": "ticket 7", "ttl_s": 60}
    made = {
        tenant: streams.diagnostics.grant(streams.identity(tenant=tenant), RUNTIME, asked) for tenant in (OURS, THEIRS)
    }
    streams.diagnostics.revoke(streams.identity(tenant=OURS), RUNTIME, made[OURS]["grant_id"])
    stored = {
        tenant: [(grant.id, grant.revoked_ms is None) for grant in streams.runtimes.grants(tenant, RUNTIME)]
        for tenant in (OURS, THEIRS, "default")
    }
    assert stored == {
        OURS: [(made[OURS]["grant_id"], False)],
        THEIRS: [(made[THEIRS]["grant_id"], True)],
        "default": [],
    }


def test_a_cursor_of_the_marker_list_is_good_in_its_own_tenant_only(streams: StreamsHub) -> None:
    """M4"""
    ours, theirs = streams.identity(tenant=OURS), streams.identity(tenant=THEIRS)
    for identity in (ours, theirs):
        for marker_id in ("m1", "m2"):
            sent = {"marker_id": marker_id, "label": "L", "position": {"lat": 1, "lon": 2}}
            streams.markers.create(identity, RUNTIME, sent)
    cursor = streams.markers.list(ours, RUNTIME, None, 1, None)["next_cursor"]
    assert [one["marker_id"] for one in streams.markers.list(ours, RUNTIME, cursor, 1, None)["markers"]] == ["m2"]
    with pytest.raises(InvalidCursor):
        streams.markers.list(theirs, RUNTIME, cursor, 1, None)


@pytest.mark.parametrize("tenant", [OURS, THEIRS])
def test_sensitive_values_of_a_marker_are_hashed_for_its_own_tenant(tenant: str, streams: StreamsHub) -> None:
    """P3"""
    sent = {"label": "L", "position": {"lat": 1, "lon": 2}, "extensions": {"peer_id": "bob"}}
    made = streams.markers.create(streams.identity(tenant=tenant), RUNTIME, sent)
    assert made["marker"]["extensions"]["peer_id"] == streams.hasher(tenant)("bob")


def test_the_hash_of_a_value_differs_between_tenants(streams: StreamsHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """P3"""
    monkeypatch.setattr(streams_wiring, "keys", lambda: streams.keys)
    ours, again, theirs = (streams_wiring.hasher(tenant)("bob") for tenant in (OURS, OURS, THEIRS))
    assert ours == again != theirs
