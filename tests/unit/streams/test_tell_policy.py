"""P3, P4: a changed privacy policy leaves one audit row per tenant, before anything is treated by it."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.ledger.application.audit import audit_ledger
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Page
from millrace.streams.domain.privacy import Policy
from tests.unit.streams.hub import RUNTIME, StreamsHub, codes, event

STRICTER = Policy.of({"fields": {"email": {"class": "sensitive", "transform": "truncate"}, "ssn": {"class": "secret"}}})
MARKER = {"label": "L", "position": {"lat": 1, "lon": 2}}


def deploy(hub: StreamsHub, policy: Policy) -> None:
    """New processes with another policy."""
    hub.policy = policy
    hub.restart()


def changes(hub: StreamsHub, **claims: Any) -> list[dict[str, Any]]:
    entries = hub.audit.read(hub.identity(**claims), 0, 100)["events"]
    return [entry for entry in entries if entry["action"] == "privacy_policy_changed"]


def test_the_baseline_leaves_neither_a_row_nor_a_record() -> None:
    hub = StreamsHub()
    hub.send(event("a"))
    assert (changes(hub), hub.rows.items) == ([], {})


def test_a_change_is_recorded_once_with_what_was_before() -> None:
    hub = StreamsHub()
    hub.send(event("a"))
    deploy(hub, STRICTER)
    for id_ in ("b", "c"):
        hub.send(event(id_))
        hub.restart()
    (entry,) = changes(hub)
    assert (entry["who"], entry["before"], entry["after"]) == ("deployment", Policy.of({}).stored(), STRICTER.stored())
    assert entry["after"]["sensitive"]["email"] == "truncate"
    assert "ssn" in entry["after"]["secret"]
    deploy(hub, Policy.of({}))
    hub.markers.create(hub.identity(), RUNTIME, MARKER)
    assert [one["after"] for one in changes(hub)] == [STRICTER.stored(), Policy.of({}).stored()]


def test_each_tenant_is_told_and_an_operator_of_any_runtime_sees_it() -> None:
    hub = StreamsHub(policy=STRICTER)
    hub.negotiate(hub.identity(tenant="t2"), RUNTIME, {"supported_contract_versions": [2]})
    hub.send(event("a"))
    assert (len(changes(hub)), len(changes(hub, tenant="t2"))) == (1, 0)
    hub.send(event("a"), tenant="t2")
    assert len(changes(hub, tenant="t2")) == 1
    assert len(changes(hub, partitions=["runtime:another"])) == 1


class SilentLog(type(StreamsHub().log)):  # type: ignore[misc]
    """Nothing can be recorded in the audit ledger."""

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        if ledger == audit_ledger("default"):
            raise Unavailable("Storage did not answer.")
        winner: Page | None = super().append(ledger, page)
        return winner


def test_nothing_is_treated_by_a_policy_whose_change_cannot_be_recorded() -> None:
    """The row is changed first and carries its record, so whoever comes next commits it, once."""
    hub = StreamsHub()
    deploy(hub, STRICTER)
    log, hub.log = hub.log, SilentLog(hub.log.pages)
    for _ in range(2):
        with pytest.raises(Unavailable):
            hub.send(event("a"))
        with pytest.raises(Unavailable):
            hub.markers.create(hub.identity(), RUNTIME, MARKER)
    assert (hub.stored(), hub.stored("markers")) == ([], [])
    hub.log = log
    assert codes(hub.send(event("a"))) == [1]
    assert len(changes(hub)) == 1
