"""What an operator sees and steers on a whole hub: overview, connections, replay, quarantine, tables, and the audit."""

from __future__ import annotations

import gzip
import hashlib
import json
import uuid
from dataclasses import replace
from typing import Any

from millrace.lake.application.editions import Editions
from millrace.lake.domain.edition import QUARANTINE, File, Segment
from tests.e2e.api import item
from tests.e2e.conftest import Hub
from tests.e2e.lake import EVENT, archived, done, eventually, operator, sent
from tests.e2e.receivers import receiver
from tests.e2e.test_delivery_hub import Tenant
from tests.e2e.test_socket import opened


def audited(tenant: Tenant) -> list[tuple[str, str]]:
    events = done(tenant.get("/v1/audit", order="newest"))["events"]
    return [(one["action"], one["outcome"]) for one in events]


def test_an_operator_sees_the_hub_at_a_glance_and_who_is_connected(stack: Hub) -> None:
    tenant = Tenant(stack)
    done(tenant.post("/v1/projects/demo/submit_events", {"events": [item("a"), item("b")]}))
    assert done(tenant.get("/v1/connections")) == {"connections": [], "next": None}
    with opened(stack, "demo", tenant=tenant.name) as socket:
        socket.ask("sync", {"since_committed_id": 0})
        (shown,) = done(tenant.get("/v1/connections", project="demo"))["connections"]
        assert (shown["client_id"], shown["project"]) == ("C1", "demo")
        assert shown["subscriptions"] == [{"subscription_id": "sync", "contract": "sync", "scope": "demo"}]
        overview = done(tenant.get("/v1/overview"))
        assert (overview["looked_at"], overview["connections"], overview["subscriptions"]) == (1, 1, 1)
        assert sum(one["events"] for one in overview["events_per_minute"]["minutes"]) == 2
    eventually(
        lambda: done(tenant.get("/v1/overview"))["stages"]["fan_out"]["lag_events"] == 0, "fan_out did not catch up"
    )
    eventually(lambda: done(tenant.get("/v1/overview"))["connections"] == 0, "the connection is still listed")
    assert done(tenant.get("/v1/runtimes/rt-1/degraded")) == {"degraded": [], "gaps": [], "next": None}
    for path in ("/v1/overview", "/v1/connections", "/v1/runtimes/rt-1/degraded", "/v1/tables", "/v1/quarantine"):
        assert stack.http.get(path, headers=tenant.headers("consumer")).status_code == 403


def test_a_project_takes_what_its_profile_says_within_seconds(stack: Hub) -> None:
    """S3"""
    tenant = Tenant(stack)

    def statuses(id_: str) -> list[str]:
        answer = done(tenant.post("/v1/projects/demo/submit_events", {"events": [item(id_)]}))
        return [one["status"] for one in answer["results"]]

    assert statuses("before") == ["committed"]
    set_ = stack.http.put("/v1/projects/demo/profile", json={"profile": "canonical"}, headers=tenant.headers())
    assert set_.json() == {"project": "demo", "profile": "canonical", "set_by": "operator"}
    tried = iter(range(10_000))
    eventually(lambda: statuses(f"after-{next(tried)}") == ["rejected"], "submits do not follow the profile")
    with opened(stack, "demo", tenant=tenant.name) as socket:

        def heard() -> str:
            answer = socket.ask("submit_events", {"events": [item(f"socket-{next(tried)}")]})
            return str(answer["payload"]["results"][0]["status"])

        eventually(lambda: heard() == "rejected", "the socket does not follow the profile")
    assert audited(tenant)[:2] == [("profile_set", "done"), ("profile_set", "begun")]


def test_a_range_is_sent_again_and_that_it_was_delivered_stays_known(stack: Hub) -> None:
    """D4, D6"""
    tenant = Tenant(stack)
    with receiver() as target:
        tenant.put("a", url=target.url)
        tenant.ingest("e1", "e2", "e3")
        tenant.until(lambda: list(tenant.statuses("a").values()) == ["success"] * 3)
        asked = {**tenant.journal, "from_position": 2, "to_position": 3}
        dry = done(tenant.post("/v1/targets/a/replay", {**asked, "dry_run": True}))
        assert (dry["matched"], dry["replayed"], dry["delivered_before"]) == (2, 0, 2)
        assert done(tenant.post("/v1/targets/a/replay", asked))["replayed"] == 2
        tenant.until(lambda: len(target.ids) == 5)
        assert target.ids == ["e1", "e2", "e3", "e2", "e3"]
        tenant.until(lambda: list(tenant.statuses("a").values()) == ["success"] * 3)
    shown = tenant.deliveries("a")
    assert shown["e1"]["delivered_before_ms"] is None
    assert shown["e2"]["delivered_before_ms"] < shown["e2"]["last_ms"]
    found = done(tenant.get(f"/v1/ledgers/delivery/{tenant.name}/event", id="e2"))["deliveries"]
    assert [(one["state"], one["delivered_before_ms"]) for one in found] == [
        ("delivered", shown["e2"]["delivered_before_ms"])
    ]
    assert audited(tenant)[:2] == [("target_replay", "done"), ("target_replay", "begun")]


def set_aside(hub: Hub, line: dict[str, Any], reason: str) -> str:
    """What compaction leaves of a line that it does not take."""
    objects, run, text = operator(hub).objects, uuid.uuid4().hex, json.dumps(line)
    entry = {
        "id": run,
        "reason": reason,
        "object": "ledger/somewhere.jsonl.gz",
        "ledger": line["ledger"],
        "sequence_position": line["sequence_position"],
        "event_type": line["event_type"],
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "bytes": len(text),
        "line": text,
    }
    data, file = gzip.compress(json.dumps(entry).encode() + b"\n"), f"lake/runs/{run}/quarantine/one.gz"
    objects.put(file, data)
    editions = Editions(objects)
    current = editions.current()
    segments = [*current.edition.segments(QUARANTINE), Segment(run, 1, (File(file, len(data)),))]
    after = replace(current.edition, number=current.edition.number + 1, run=run).having(QUARANTINE, segments)
    assert editions.publish(current, after)
    return run


def of_orders(hub: Hub, tenant: Tenant) -> list[dict[str, Any]]:
    return [line for line in archived(hub, tenant.name) if line["ledger"] == f"catalog#{tenant.name}#orders"]


def test_a_quarantined_line_is_repaired_with_the_operators_token(stack: Hub) -> None:
    """C5, C7"""
    tenant = Tenant(stack)
    done(tenant.post("/v1/catalog/orders/events", {**EVENT, "idempotency_key": "k1"}))
    eventually(lambda: bool(of_orders(stack, tenant)), "it is not archived")
    (line,) = of_orders(stack, tenant)
    reason = f"reason-{tenant.name}"
    id_ = set_aside(stack, {**line, "event_version": 9}, reason)
    (listed,) = done(tenant.get("/v1/quarantine", reason=reason))["entries"]
    assert (listed["id"], listed["contract"], listed["scope"], listed["position"]) == (id_, "catalog", "orders", 1)
    shown = json.loads(done(tenant.get(f"/v1/quarantine/{id_}"))["line"])
    assert Tenant(stack).get(f"/v1/quarantine/{id_}").status_code == 404, "another tenant's"
    foreign = {"lines": [{**shown, "ledger": "catalog#another#orders", "tenant": "another"}]}
    assert tenant.post(f"/v1/quarantine/{id_}/repair", foreign).status_code == 403
    repaired = done(tenant.post(f"/v1/quarantine/{id_}/repair", {"lines": [{**shown, "event_version": 1}]}))
    assert repaired["redriven"].keys() == {id_}
    assert [one["event_version"] for one in of_orders(stack, tenant)] == [1, 1]
    assert done(tenant.get("/v1/quarantine", reason=reason))["entries"] == []
    assert done(tenant.post("/v1/quarantine/redrive", {"reason": reason})) == {"redriven": {}, "next": None}
    assert audited(tenant)[2:6] == [
        ("quarantine_repair", "done"),
        ("quarantine_repair", "begun"),
        ("quarantine_repair", "refused"),
        ("quarantine_repair", "begun"),
    ]


def test_tables_and_registry_of_the_whole_hub_are_for_those_who_run_it(stack: Hub) -> None:
    tenant = Tenant(stack)
    assert done(tenant.get("/v1/tables"))["waiting"] is None
    assert done(sent(stack, "GET", "/v1/tables", roles=["operator"]))["waiting"]["objects"] >= 0
    before = done(tenant.get("/v1/registry"))
    refused = stack.http.put("/v1/registry", json={}, headers=tenant.headers())
    assert refused.status_code == 403, refused.text
    known = before["registry"] or {}
    types = {**known.get("types", {}), f"type.{tenant.name}": {"versions": {"1": {}}}}
    put = done(sent(stack, "PUT", "/v1/registry", {**known, "types": types}, roles=["operator"]))
    assert put["types"] == before["types"] + 1
    assert done(tenant.get("/v1/registry"))["registry"]["types"] == types
