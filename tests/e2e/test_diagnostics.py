"""Break-glass diagnostics on a whole hub (P4): grants, what they show, when they end, and the audit of all of it."""

from __future__ import annotations

import os
from typing import Any

import pytest

from millrace.streams.domain.grant import BreakGlassGrant
from millrace.streams.ports import RawEntry
from tests.e2e.conftest import Hub
from tests.e2e.streams_api import EVERY_ROLE, Runtime, Stores, code, event, negotiated, now_ms

ENDED, DENIED = "SDK_SECURITY_GRANT_ENDED", "SDK_SECURITY_AUTHZ_DENIED"
RAW = {"peer_id": "peer-raw-1", "trace_id": "trace-raw-1"}


def operated(stack: Hub, id_: str) -> Runtime:
    """A runtime in a tenant of its own, whose audit ledger holds nothing else."""
    return negotiated(stack, id_, {"tenant": f"tenant-{id_}", "roles": EVERY_ROLE, "client_id": "OP1"})


def grant(runtime: Runtime, **asked: Any) -> dict[str, Any]:
    return runtime.good("POST", "/diagnostics/grants", json={"reason": "ticket 7", "ttl_s": 600, **asked})


def read(runtime: Runtime, grant_id: str) -> list[dict[str, Any]]:
    """All that is kept under a grant, page by page."""
    page = runtime.good("GET", f"/diagnostics/{grant_id}", params={"max": 2})
    entries = list(page["entries"])
    while page["next_after"] is not None:
        page = runtime.good("GET", f"/diagnostics/{grant_id}", params={"max": 2, "after": page["next_after"]})
        entries += page["entries"]
    return entries


def audited(runtime: Runtime) -> list[dict[str, Any]]:
    page = runtime.good("GET", "/v1/audit", params={"max": 3})
    events = list(page["events"])
    while page["events"]:
        page = runtime.good("GET", "/v1/audit", params={"max": 3, "after": page["next_after"]})
        events += page["events"]
    assert [one["position"] for one in events] == list(range(1, len(events) + 1))
    return events


def shown(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {one["event_id"]: {value["path"]: value["value"] for value in one["values"]} for one in entries}


def kept(hub: Hub, grant_id: str) -> int:
    """Items under a grant in the table itself, whatever the door says."""
    answer = hub.client("dynamodb").query(
        TableName=hub.tables["diagnostics"],
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": {"S": grant_id}},
        ConsistentRead=True,
    )
    return int(answer["Count"])


def test_p4_raw_values_are_shown_under_a_grant_and_nothing_before_it(stack: Hub) -> None:
    runtime = operated(stack, "opened")
    runtime.emit("s", event("before", **RAW))
    made = grant(runtime)
    assert made["status"] == "active"
    assert made["scope"] == {"streams": None, "fields": None}
    assert (made["who"], made["reason"], made["runtime_id"]) == ("OP1", "ticket 7", "opened")
    assert made["expires_ts_ms"] - made["created_ts_ms"] == 600_000
    nested = {"hops": [{"peerId": {"name": "n", "AUTH-TOKEN": "never-shown"}}], "message_payload": "never-shown"}
    runtime.emit("s", event("after", **RAW), event("plain"), event("deep", payload=nested))
    runtime.emit("t", event("after", correlation_id="corr-raw"))
    entries = read(runtime, made["grant_id"])
    assert shown([one for one in entries if one["stream_id"] == "s"]) == {
        "after": RAW,
        "deep": {"payload.hops[0].peerId": {"name": "n"}},
    }
    assert [(one["stream_id"], one["seq_no"]) for one in entries] == [("s", 2), ("s", 4), ("t", 1)]
    assert "never-shown" not in str(entries)
    stored = {one["event_id"]: one for one in runtime.events("s")}
    assert stored["after"]["peer_id"].startswith("hmac:")
    assert stored["before"]["peer_id"] == stored["after"]["peer_id"], "the same value looks the same"
    assert runtime.good("GET", "/diagnostics/grants")["grants"] == [made]


def test_p4_a_scope_keeps_no_more_than_it_names(stack: Hub) -> None:
    runtime = operated(stack, "scoped")
    made = grant(runtime, scope={"streams": ["s"], "fields": ["PeerId", "auth_token"]})
    runtime.emit("s", event("a", **RAW, payload={"auth_token": "never-shown"}))
    runtime.emit("t", event("a", **RAW))
    assert shown(read(runtime, made["grant_id"])) == {"a": {"peer_id": "peer-raw-1"}}
    assert kept(stack, made["grant_id"]) == 1


def test_p4_a_revoked_grant_shows_and_keeps_nothing_more(stack: Hub) -> None:
    runtime = operated(stack, "revoked")
    made, other = grant(runtime), grant(runtime)
    runtime.emit("s", event("a", **RAW))
    assert shown(read(runtime, made["grant_id"])) == {"a": RAW}
    revoked = runtime.good("DELETE", "/diagnostics/grants", params={"grant_id": made["grant_id"]})
    assert revoked == {**made, "status": "revoked"}
    assert code(runtime.ask("GET", f"/diagnostics/{made['grant_id']}"), 403) == ENDED
    runtime.emit("s", event("b", **RAW))
    assert (kept(stack, made["grant_id"]), kept(stack, other["grant_id"])) == (1, 2)
    assert shown(read(runtime, other["grant_id"])) == {"a": RAW, "b": RAW}, "another grant goes on"
    again = runtime.good("DELETE", "/diagnostics/grants", params={"grant_id": made["grant_id"]})
    assert again == revoked
    (stored,) = (g for g in Stores.of(stack).runtimes.grants("tenant-revoked", "revoked") if g.revoked_ms)
    assert stored.salt == "", "what was kept cannot be opened by anybody"


def test_p4_an_expired_grant_shows_nothing_though_its_items_are_still_there(stack: Hub) -> None:
    """A time to live alone would still show them: DynamoDB may take days to delete an item."""
    runtime, stores, now = operated(stack, "expired-grant"), Stores.of(stack), now_ms()
    ended = BreakGlassGrant(
        "ended", runtime.id, "OP1", "ticket 6", None, None, now - 60_001, now - 1, os.urandom(16).hex()
    )
    stores.runtimes.put_grant("tenant-expired-grant", ended)
    stores.raw_values.keep("ended", [RawEntry("s", "a", 1, b"sealed")], now + 600_000)
    assert code(runtime.ask("GET", "/diagnostics/ended"), 403) == ENDED
    assert [one["status"] for one in runtime.good("GET", "/diagnostics/grants")["grants"]] == ["expired"]
    runtime.emit("s", event("b", **RAW))
    assert kept(stack, "ended") == 1, "nothing was added"
    assert [one["action"] for one in audited(runtime)] == ["negotiated", "raw_read_refused"]


def test_p4_every_grant_and_every_read_is_audited(stack: Hub) -> None:
    runtime = operated(stack, "audited")
    made = grant(runtime, scope={"fields": ["trace_id"]})
    runtime.emit("s", event("a", **RAW), event("b", **RAW), event("c", **RAW))
    read(runtime, made["grant_id"])
    runtime.good("GET", "/diagnostics/grants")
    runtime.good("DELETE", "/diagnostics/grants", params={"grant_id": made["grant_id"]}, claims={"client_id": "OP2"})
    runtime.ask("GET", f"/diagnostics/{made['grant_id']}", claims={"client_id": "OP3"})
    agreed, *entries = audited(runtime)
    assert (agreed["who"], agreed["action"], agreed["profile"]) == ("OP1", "negotiated", "desktop-full")
    assert [(one["who"], one["action"]) for one in entries] == [
        ("OP1", "grant_made"),
        ("OP1", "raw_read"),
        ("OP1", "raw_read"),
        ("OP2", "grant_revoked"),
        ("OP3", "raw_read_refused"),
    ]
    assert {(one["runtime_id"], one["grant_id"]) for one in entries} == {("audited", made["grant_id"])}
    assert (entries[0]["reason"], entries[0]["scope"]) == ("ticket 7", {"streams": None, "fields": ["trace_id"]})
    assert [one["event_ids"] for one in entries[1:3]] == [["a", "b"], ["c"]]
    assert "trace-raw" not in str(entries)
    assert [one["runtime_id"] for one in audited(operated(stack, "another-tenant"))] == ["another-tenant"]


@pytest.mark.parametrize("claims", [{"roles": ["producer", "consumer"]}, {"partitions": ["runtime:other"]}])
def test_p4_nobody_but_an_operator_of_the_runtime_sees_anything(stack: Hub, claims: dict[str, Any]) -> None:
    runtime = operated(stack, f"locked-{next(iter(claims))}")
    made = grant(runtime)
    runtime.emit("s", event("a", **RAW))
    asked: dict[str, Any] = {"reason": "r", "ttl_s": 60}
    refused = [
        runtime.ask("POST", "/diagnostics/grants", claims=claims, json=asked),
        runtime.ask("GET", "/diagnostics/grants", claims=claims),
        runtime.ask("DELETE", "/diagnostics/grants", claims=claims, params={"grant_id": made["grant_id"]}),
        runtime.ask("GET", f"/diagnostics/{made['grant_id']}", claims=claims),
    ]
    if "roles" in claims:
        refused.append(runtime.ask("GET", "/v1/audit", claims=claims))
    assert [code(response, 403) for response in refused] == [DENIED] * len(refused)
    assert shown(read(runtime, made["grant_id"])) == {"a": RAW}, "the grant is as it was"


def test_p4_a_grant_belongs_to_its_runtime_and_tenant(stack: Hub) -> None:
    runtime, other = operated(stack, "owner"), operated(stack, "stranger")
    made = grant(runtime)
    for ask in (other.ask, Runtime(stack, "owner", other.claims).ask):
        assert code(ask("GET", f"/diagnostics/{made['grant_id']}"), 404) == "SDK_RUNTIME_NOT_FOUND"
