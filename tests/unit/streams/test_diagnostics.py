"""P4: raw sensitive values only under a grant, in its scope, until it ends; every grant and read is audited."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from millrace.ledger.application import audit
from millrace.ledger.application.audit import audit_ledger
from millrace.ledger.domain.errors import Forbidden, Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Page
from millrace.streams.adapters.memory import MemoryRawValues
from millrace.streams.domain.errors import Absent, GrantEnded, InvalidArgument
from millrace.streams.ports import RawEntry
from tests.unit.streams.hub import RUNTIME, StreamsHub, event

CANARY = "canary-d"


def grant(hub: StreamsHub, ttl_s: int = 60, **sent: Any) -> str:
    made = hub.diagnostics.grant(hub.identity(), RUNTIME, {"reason": "ticket 7", "ttl_s": ttl_s, **sent})
    return str(made["grant_id"])


def read(hub: StreamsHub, grant_id: str, after: str = "", limit: int = 50) -> dict[str, Any]:
    return hub.diagnostics.read(hub.identity(), RUNTIME, grant_id, after, limit)


def values(hub: StreamsHub, grant_id: str) -> list[tuple[str, str, Any]]:
    return [
        (entry["event_id"], one["path"], one["value"])
        for entry in read(hub, grant_id)["entries"]
        for one in entry["values"]
    ]


def actions(hub: StreamsHub) -> list[str]:
    return [entry["action"] for entry in hub.audit.read(hub.identity(), 0, 500)["events"]]


def test_a_grant_says_who_why_what_and_until_when() -> None:
    """P4."""
    hub = StreamsHub()
    scope = {"streams": ["s"], "fields": ["peer_id"]}
    asked = {"reason": "ticket 7", "ttl_s": 90, "scope": scope}
    made = hub.diagnostics.grant(hub.identity(client_id="ops"), RUNTIME, asked)
    assert made == {
        "grant_id": made["grant_id"],
        "runtime_id": RUNTIME,
        "who": "ops",
        "reason": "ticket 7",
        "scope": scope,
        "created_ts_ms": hub.clock.ms,
        "expires_ts_ms": hub.clock.ms + 90_000,
        "status": "active",
    }
    assert hub.diagnostics.grants(hub.identity(), RUNTIME) == {"grants": [made]}


def test_without_a_grant_nothing_raw_is_kept() -> None:
    """P4: nor is what was emitted before it, or in another runtime."""
    hub = StreamsHub()
    hub.agree("r2")
    hub.send(event("before", peer_id=CANARY))
    grant_id = grant(hub)
    hub.send(event("elsewhere", peer_id=CANARY), runtime="r2")
    hub.send(event("plain"))
    assert hub.raw.entries == {}
    assert read(hub, grant_id)["entries"] == []


def test_under_a_grant_the_raw_values_of_its_scope_can_be_read() -> None:
    """P4: sealed where they are kept."""
    hub = StreamsHub()
    everything = grant(hub)
    some = grant(hub, scope={"streams": ["s"], "fields": ["TraceId"]})
    other = grant(hub, scope={"streams": ["s2"]})
    sent = event("a", peer_id=f"{CANARY}-bob", ts_ms=5, payload={"hops": [{"trace_id": {"n": [CANARY]}}]})
    hub.send(event("plain"), sent)
    hub.send(event("b", correlation_id=CANARY), stream="s2")
    assert CANARY not in repr(hub.raw.entries)
    assert values(hub, everything) == [
        ("a", "payload.hops[0].trace_id", {"n": [CANARY]}),
        ("a", "peer_id", f"{CANARY}-bob"),
        ("b", "correlation_id", CANARY),
    ]
    assert values(hub, some) == [("a", "payload.hops[0].trace_id", {"n": [CANARY]})]
    assert values(hub, other) == [("b", "correlation_id", CANARY)]
    entry = read(hub, some)["entries"][0]
    assert {name: entry[name] for name in ("stream_id", "event_id", "seq_no", "ts_ms")} == {
        "stream_id": "s",
        "event_id": "a",
        "seq_no": 2,
        "ts_ms": 5,
    }


def test_secret_values_are_never_kept() -> None:
    """P2, P4: not even inside a sensitive value, in the scope by name."""
    hub = StreamsHub()
    grant_id = grant(hub, scope={"fields": ["auth_token", "peer_id"]})
    hub.send(event("a", peer_id="bob", payload={"auth_token": CANARY, "PeerId": {"x": 1, "SessionSecret": CANARY}}))
    assert values(hub, grant_id) == [("a", "payload.PeerId", {"x": 1}), ("a", "peer_id", "bob")]


def test_refused_events_leave_nothing_raw_and_a_repeated_one_what_it_left_before() -> None:
    """P4."""
    hub = StreamsHub()
    grant_id = grant(hub)
    hub.send(event("bad", "Other", peer_id=CANARY), event("a", peer_id="bob"))
    hub.send(event("a", peer_id="alice"), event("a", payload={}, peer_id=CANARY))
    assert values(hub, grant_id) == [("a", "peer_id", "bob")]


def test_a_grant_ends_with_its_time() -> None:
    """P4: checked on read; and nothing is kept from then on."""
    hub = StreamsHub()
    grant_id = grant(hub, 60)
    hub.send(event("a", peer_id="bob"))
    hub.clock.advance(59_999)
    assert values(hub, grant_id)
    hub.clock.advance(1)
    hub.send(event("b", peer_id="bob"))
    with pytest.raises(GrantEnded) as refusal:
        read(hub, grant_id)
    assert (refusal.value.status, refusal.value.details) == (403, {"grant_id": grant_id})
    assert [entry.event_id for entry in hub.raw.entries[grant_id].values()] == ["a"]
    assert hub.diagnostics.grants(hub.identity(), RUNTIME)["grants"][0]["status"] == "expired"


def test_a_revoked_grant_ends_at_once_and_its_key_is_gone() -> None:
    """P4: what was kept cannot be opened any more, whoever gets hold of it."""
    hub = StreamsHub()
    grant_id, other = grant(hub), grant(hub)
    hub.send(event("a", peer_id="bob"))
    revoked = hub.diagnostics.revoke(hub.identity(), RUNTIME, grant_id)
    assert revoked["status"] == "revoked"
    hub.send(event("b", peer_id="bob"))
    with pytest.raises(GrantEnded):
        read(hub, grant_id)
    assert len(hub.raw.entries[grant_id]) == 1
    stored = next(one for one in hub.runtimes.grants("default", RUNTIME) if one.id == grant_id)
    assert stored.salt == ""
    assert len(values(hub, other)) == 2, "another grant goes on"
    assert hub.diagnostics.revoke(hub.identity(), RUNTIME, grant_id) == revoked
    assert actions(hub).count("grant_revoked") == 1


def test_a_grant_that_ends_while_it_is_read_shows_nothing() -> None:
    """P4."""
    hub = StreamsHub()
    grant_id = grant(hub)
    hub.send(event("a", peer_id="bob"))

    class Slow(MemoryRawValues):
        def page(self, grant_id: str, after: str, limit: int) -> tuple[Any, str | None]:
            hub.clock.advance(60_000)
            return MemoryRawValues.page(self, grant_id, after, limit)

    hub.raw = Slow(hub.raw.entries)
    with pytest.raises(GrantEnded):
        read(hub, grant_id)


def test_raw_values_outlive_one_rotation_of_the_secret() -> None:
    """P4."""
    hub = StreamsHub()
    grant_id = grant(hub)
    hub.send(event("a", peer_id="bob"))
    hub.rotate("second secret")
    assert values(hub, grant_id) == [("a", "peer_id", "bob")]
    hub.rotate("third secret")
    with pytest.raises(GrantEnded):
        read(hub, grant_id)


def test_raw_values_are_read_in_pages() -> None:
    """P4."""
    hub = StreamsHub()
    grant_id = grant(hub)
    hub.send(*(event(f"e{n:02}", peer_id=f"p{n}") for n in range(11)))
    seen, after = [], ""
    while True:
        page = read(hub, grant_id, after, 4)
        assert len(page["entries"]) <= 4
        seen += [entry["event_id"] for entry in page["entries"]]
        if page["next_after"] is None:
            break
        after = page["next_after"]
    assert seen == [f"e{n:02}" for n in range(11)]


def test_a_grant_of_another_runtime_or_tenant_is_not_found() -> None:
    """P4, T12."""
    hub = StreamsHub()
    grant_id = grant(hub)
    for identity, runtime, id_ in (
        (hub.identity(), "r2", grant_id),
        (hub.identity(tenant="t2"), RUNTIME, grant_id),
        (hub.identity(), RUNTIME, "other"),
    ):
        with pytest.raises(Absent) as refusal:
            hub.diagnostics.read(identity, runtime, id_, "", 5)
        assert refusal.value.status == 404
        with pytest.raises(Absent):
            hub.diagnostics.revoke(identity, runtime, id_)
    with pytest.raises(InvalidArgument):
        read(hub, "")


@pytest.mark.parametrize("claims", [{"roles": ["producer", "consumer"]}, {"partitions": ["runtime:r2"]}])
def test_grants_are_an_operators_of_that_runtime(claims: dict[str, Any]) -> None:
    """P4, T12."""
    hub = StreamsHub()
    grant_id = grant(hub)
    me, door = hub.identity(**claims), hub.diagnostics
    attempts: list[Callable[[], Any]] = [
        lambda: door.grant(me, RUNTIME, {"reason": "why", "ttl_s": 60}),
        lambda: door.grants(me, RUNTIME),
        lambda: door.revoke(me, RUNTIME, grant_id),
        lambda: door.read(me, RUNTIME, grant_id, "", 5),
    ]
    for attempt in attempts:
        with pytest.raises(Forbidden):
            attempt()
    assert actions(hub) == ["negotiated", "grant_made", *(["raw_read_refused"] if "partitions" in claims else [])]


def test_every_grant_and_every_read_is_in_the_audit_ledger() -> None:
    """P4: refused reads, too; in order, with who did it, and never with a value."""
    hub = StreamsHub()
    grant_id = grant(hub, scope={"fields": ["peer_id"]})
    hub.send(event("a", peer_id=CANARY))
    hub.diagnostics.read(hub.identity(client_id="eve"), RUNTIME, grant_id, "", 50)
    hub.diagnostics.revoke(hub.identity(client_id="bob"), RUNTIME, grant_id)
    with pytest.raises(GrantEnded):
        read(hub, grant_id)
    page = hub.audit.read(hub.identity(), 1, 100)
    common = {"runtime_id": RUNTIME, "grant_id": grant_id, "ts_ms": hub.clock.ms}
    assert page["events"] == [
        {
            **common,
            "position": 2,
            "who": "me",
            "action": "grant_made",
            "reason": "ticket 7",
            "scope": {"streams": None, "fields": ["peer_id"]},
            "expires_ts_ms": hub.clock.ms + 60_000,
        },
        {**common, "position": 3, "who": "eve", "action": "raw_read", "event_ids": ["a"]},
        {**common, "position": 4, "who": "bob", "action": "grant_revoked"},
        {**common, "position": 5, "who": "me", "action": "raw_read_refused"},
    ]
    assert page["next_after"] == 5
    assert CANARY not in json.dumps(page)


def test_the_audit_ledger_is_read_on_from_a_position_by_operators_of_the_tenant() -> None:
    """P4."""
    hub = StreamsHub()
    for _ in range(6):
        grant(hub)
    seen, after = [], 0
    while page := hub.audit.read(hub.identity(), after, 3):
        if not page["events"]:
            break
        seen += [entry["position"] for entry in page["events"]]
        after = page["next_after"]
    assert seen == list(range(1, 8))
    assert hub.audit.read(hub.identity(), 99, 3) == {"events": [], "next_after": 99}
    assert hub.audit.read(hub.identity(tenant="t2"), 0, 3) == {"events": [], "next_after": 0}
    with pytest.raises(Forbidden):
        hub.audit.read(hub.identity(roles=["consumer", "producer"]), 0, 3)


def test_rows_of_runtimes_that_a_token_does_not_reach_hide_none_that_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """P4: a page is filled past them; where they are too many for one answer, `next_after` goes on."""
    hub = StreamsHub(negotiated=False)
    for _ in range(30):
        hub.agree("theirs")
    hub.agree("ours")
    ours = hub.identity(partitions=["runtime:ours"])
    page = hub.audit.read(ours, 0, 3)
    assert ([entry["position"] for entry in page["events"]], page["next_after"]) == ([31], 31)
    monkeypatch.setattr(audit, "SCANNED", 20)
    first = hub.audit.read(ours, 0, 3)
    assert first == {"events": [], "next_after": 20}
    assert [entry["runtime_id"] for entry in hub.audit.read(ours, 20, 3)["events"]] == ["ours"]


class FailingLog(type(StreamsHub().log)):  # type: ignore[misc]
    """Nothing can be recorded in the audit ledger."""

    def append(self, ledger: Ledger, page: Page) -> Page | None:
        if ledger == audit_ledger("default"):
            raise Unavailable("Storage did not answer.")
        winner: Page | None = super().append(ledger, page)
        return winner


def test_what_cannot_be_recorded_may_not_be_done() -> None:
    """P4: no grant, no revocation and no read without its entry."""
    hub = StreamsHub()
    grant_id = grant(hub)
    hub.send(event("a", peer_id="bob"))
    hub.log = FailingLog(hub.log.pages)
    before = hub.runtimes.grants("default", RUNTIME)
    for attempt in (
        lambda: grant(hub),
        lambda: hub.diagnostics.revoke(hub.identity(), RUNTIME, grant_id),
        lambda: read(hub, grant_id),
    ):
        with pytest.raises(Unavailable):
            attempt()
    assert hub.runtimes.grants("default", RUNTIME) == before


def test_raw_values_that_cannot_be_kept_fail_the_emission_and_a_retry_keeps_them() -> None:
    """P4: what a grant covers is not silently missing from it."""
    hub = StreamsHub()
    grant_id = grant(hub)

    class Failing(MemoryRawValues):
        def keep(self, grant_id: str, entries: Any, expires_ms: int) -> None:
            raise Unavailable("Storage did not answer.")

    kept, hub.raw = hub.raw, Failing()
    with pytest.raises(Unavailable):
        hub.send(event("a", peer_id="bob"))
    hub.raw = kept
    hub.send(event("a", peer_id="bob"))
    assert values(hub, grant_id) == [("a", "peer_id", "bob")]
    assert [one["event_id"] for one in hub.stored()] == ["a"]


def test_an_entry_that_was_altered_is_not_shown() -> None:
    """P4: sealing is authenticated."""
    hub = StreamsHub()
    grant_id = grant(hub)
    hub.send(event("a", peer_id="bob"))
    entries = hub.raw.entries[grant_id]
    for key, entry in entries.items():
        entries[key] = RawEntry(entry.stream_id, entry.event_id, entry.position, entry.sealed[:-1] + b"\0")
    with pytest.raises(GrantEnded):
        read(hub, grant_id)
