"""The rights that every route and every message of a socket needs, as a table; and tokens that lack one of them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import ANY

import jwt

from millrace.runtime.http import Request
from millrace.runtime.tokens import Tokens
from tests.unit.runtime.test_handlers import changed, query, sample

ISSUER, AUDIENCE, SECRET = "issuer", "audience", "a secret of the hub, long enough to sign with"
TENANT, PROJECT = "default", "demo"
ROLES = frozenset({"producer", "consumer", "operator"})

Needs = tuple[frozenset[str], ...]
"""Of each of these sets, the token must carry a role."""
READ: Needs = (frozenset({"consumer"}),)
WRITE: Needs = (frozenset({"producer"}),)
OPERATE: Needs = (frozenset({"operator"}),)
READ_OR_WRITE: Needs = (frozenset({"consumer", "producer"}),)
READ_AND_OPERATE: Needs = READ + OPERATE
ANY_TOKEN: Needs = ()

AGREES, READS, CREATES = range(3)
"""A stranger agrees on a contract, looks at what is there, and only then makes things of its own."""

GRANT, CURSOR = "GRANT", "CURSOR"
"""Stand for what the first tenant's hub has given out."""

Answer = tuple[int, Mapping[str, Any]]
"""A status, and part of the body."""
RUNTIME, SESSION = "/v1/runtimes/{runtime_id}", "/v1/realtime/sessions/{sessionId}"
FOREIGN_CURSOR: Answer = (400, {"machine_code": "SDK_RUNTIME_INVALID_CURSOR"})
NOT_FOUND: Answer = (404, {"machine_code": "SDK_RUNTIME_NOT_FOUND"})
OWN_NEGOTIATION: Answer = (200, {"events": [ANY], "next_after": 1})
NO_LEDGER: Answer = (404, {"message": "There is no such ledger."})
NO_EVENT: Answer = (404, {"message": "There is no such event in this ledger."})
NO_LEDGERS: Answer = (200, {"ledgers": []})
SMALL: Answer = (200, {"targets": {"well": 0, "paused": 0, "blocked": 0}})
NO_NUMBERS: Answer = (200, {"tables": None, "waiting": None, "quarantine": None})
NO_ENTRY: Answer = (404, {"message": "Nothing in quarantine has this id."})
NO_TARGET: Answer = (404, {"message": "There is no such target."})


@dataclass(frozen=True)
class Door:
    """A request as the owner of the first tenant's data sends it, and what it takes."""

    event: dict[str, Any]
    needs: Needs
    elsewhere: Answer
    """What another tenant's token gets."""
    partition: str | None = None
    project: bool = False
    right: int = 200
    unreached: Answer = (403, {})
    """What a token for another partition gets."""
    turn: int = READS
    """When another tenant's token comes to it."""
    again: bool = False
    """What it makes is taken away by a later request of this table, and made again at the end."""
    then: str = ""
    """The background function whose sample comes next."""

    @property
    def route(self) -> str:
        return Request(self.event).route


def reader(route: str, body: Any = None, **query_parameters: str) -> dict[str, Any]:
    """A request to the replay function, which has a sample of one of its routes."""
    parameters = {"sessionId": "sess-1", "type": "call.started"}
    return changed(
        sample("replay"),
        body,
        routeKey=route,
        pathParameters=parameters,
        **({"queryStringParameters": query_parameters} if query_parameters else {}),
    )


def retained(name: str) -> dict[str, Any]:
    """The retention of a project."""
    return changed(sample(name), pathParameters={"contract": "sync", "scope": PROJECT})


CHECKPOINT = {"consumerId": "ui", "watermarkTs": "2026-02-16T10:00:00.000Z", "watermarkEventId": "evt-1"}
FORBIDDEN_ITEM = {"id": "order-17-paid", "status": "rejected", "reason": "forbidden", "errors": ANY}
FORBIDDEN_RESULTS = {"results": [{**FORBIDDEN_ITEM, "status_updated_at": ANY}]}
COMMITTED = {"results": [{"id": ANY, "status": "committed", "committed_id": 1, "status_updated_at": ANY}]}
NOTHING_DELIVERED = {
    "delivery_targets": [],
    "event_journal": {
        "captured_event_count": 0,
        "retained_event_count": 0,
        "drain_blocked": [],
        "suggestion": None,
    },
    "delivery_ledger": {
        "current_target_delivered_count": 0,
        "previous_target_delivered_count": 0,
        "terminal_failed_count": 0,
        "retained_event_count": 0,
        "by_status": ANY,
    },
}

DOORS = (
    Door(
        sample("submit"),
        WRITE,
        (200, COMMITTED),
        "orders",
        project=True,
        unreached=(200, FORBIDDEN_RESULTS),
        turn=CREATES,
    ),
    Door(sample("sync"), READ, (200, {"events": [], "sync_to_committed_id": 0}), "orders", project=True),
    Door(changed(sample("sync"), {"since_committed_id": 0}), READ, (200, {"events": []}), "*", project=True),
    Door(sample("publish"), WRITE, (200, {"deduped": False}), "session:sess-1", turn=CREATES),
    Door(sample("publish"), WRITE, (200, {"deduped": True}), "session:sess-1", turn=CREATES),
    Door(sample("replay"), READ, (200, {"events": []}), "session:sess-1"),
    Door(
        reader(f"POST {SESSION}/checkpoint", CHECKPOINT),
        READ,
        (200, {"applied": True}),
        "session:sess-1",
        turn=CREATES,
    ),
    Door(reader(f"GET {SESSION}/transcript"), READ, (200, {"utterances": [], "sequence": 0}), "session:sess-1"),
    Door(
        reader(f"GET {SESSION}/transcript", rebuild="true"),
        READ_AND_OPERATE,
        (200, {"utterances": [], "sequence": 0}),
        "session:sess-1",
    ),
    Door(reader("GET /v1/realtime/metrics"), READ, (200, {"emitted": 0, "invalid": 0, "deduped": 0})),
    Door(reader("GET /v1/realtime/schemas/{type}"), ANY_TOKEN, (200, {"title": "call.started"})),
    Door(sample("negotiate"), READ_OR_WRITE, (200, {"runtime_id": "rt-1"}), "runtime:rt-1", turn=AGREES),
    Door(sample("effective"), READ_OR_WRITE, (200, {"runtime_id": "rt-1"}), "runtime:rt-1"),
    Door(sample("grant_create"), OPERATE, (200, {"status": "active"}), "runtime:rt-1", turn=CREATES, again=True),
    Door(sample("emit"), WRITE, (200, {"seq_no": 1, "deduped": False}), "runtime:rt-1", turn=CREATES),
    Door(sample("poll"), READ, (200, {"events": []}), "runtime:rt-1"),
    Door(query("poll", cursor=CURSOR), READ, FOREIGN_CURSOR, "runtime:rt-1"),
    Door(sample("status"), READ, (200, {"streams": []}), "runtime:rt-1"),
    Door(query("status", rebuild="true"), OPERATE, (200, {"streams": []}), "runtime:rt-1"),
    Door(sample("marker_create"), WRITE, (200, {"accepted": True}), "runtime:rt-1", turn=CREATES, again=True),
    Door(sample("marker_list"), READ, (200, {"markers": []}), "runtime:rt-1"),
    Door(sample("marker_move"), WRITE, NOT_FOUND, "runtime:rt-1"),
    Door(sample("grant_list"), OPERATE, (200, {"grants": []}), "runtime:rt-1"),
    Door(sample("diagnostics"), OPERATE, NOT_FOUND, "runtime:rt-1"),
    Door(sample("audit"), OPERATE, OWN_NEGOTIATION, "runtime:rt-1", unreached=(200, {"events": []})),
    Door(
        sample("ingest"),
        WRITE,
        (200, {"results": [{"event_id": ANY, "status": "success"}]}),
        "team:default",
        turn=CREATES,
    ),
    Door(
        sample("ingest_rest"),
        WRITE,
        (200, {"results": [{"event_id": ANY, "status": ANY}]}),
        "team:default",
        turn=CREATES,
    ),
    Door(sample("target_list"), OPERATE, (200, {"targets": []}), "*", unreached=(200, {"targets": []})),
    Door(sample("target_put"), OPERATE, (200, {"target_id": "archive-hub"}), "*", turn=CREATES, again=True),
    Door(sample("target_patch"), OPERATE, NO_TARGET, "*"),
    Door(sample("target_get"), OPERATE, NO_TARGET, "*"),
    Door(sample("target_drain"), OPERATE, NO_TARGET, "*", then="deliver"),
    Door(sample("deliveries"), OPERATE, NO_TARGET, "*"),
    Door(sample("delivery_retry"), OPERATE, NO_TARGET, "*", right=409),
    Door(query("target_list", counts="true"), OPERATE, (200, {"targets": []}), "*", unreached=(200, {"targets": []})),
    Door(sample("delivery_attempts"), OPERATE, NO_TARGET, "*"),
    Door(sample("target_retry"), OPERATE, NO_TARGET, "*"),
    Door(sample("target_replay"), OPERATE, NO_TARGET, "*"),
    Door(sample("target_pause"), OPERATE, NO_TARGET, "*"),
    Door(sample("target_resume"), OPERATE, NO_TARGET, "*"),
    Door(sample("delivery_status"), OPERATE, (200, NOTHING_DELIVERED), "*", unreached=(200, {"delivery_targets": []})),
    Door(sample("catalog"), WRITE, (200, {"sequence_position": 1, "deduped": False}), "catalog:orders", turn=CREATES),
    Door(sample("retention_set"), OPERATE, (200, {"max_age_days": 90}), "catalog:orders", turn=CREATES),
    Door(sample("retention_read"), OPERATE, (200, {"max_age_days": None}), "catalog:orders"),
    Door(sample("ledger_list"), OPERATE, (200, {"ledgers": [], "next": None}), "catalog:orders", unreached=NO_LEDGERS),
    Door(sample("ledger_get"), OPERATE, NO_LEDGER, "catalog:orders"),
    Door(sample("ledger_events"), OPERATE, NO_LEDGER, "catalog:orders"),
    Door(sample("ledger_event"), OPERATE, NO_EVENT, "orders", project=True, unreached=NO_EVENT),
    Door(
        sample("overview"), OPERATE, (200, {"looked_at": ANY, "connections": 0, "problems": []}), "*", unreached=SMALL
    ),
    Door(sample("connection_list"), OPERATE, (200, {"connections": []}), project=True),
    Door(sample("degraded_list"), OPERATE, (200, {"degraded": [], "gaps": []}), "runtime:rt-1"),
    Door(sample("negotiation_list"), OPERATE, (200, {"negotiations": [ANY]}), "runtime:rt-1"),
    Door(sample("tables"), OPERATE, (200, {"edition": 0, "tables": None, "waiting": None}), "*", unreached=NO_NUMBERS),
    Door(sample("quarantine_list"), OPERATE, (200, {"entries": []})),
    Door(sample("quarantine_show"), OPERATE, NO_ENTRY, right=404, unreached=NO_ENTRY),
    Door(sample("quarantine_redrive"), OPERATE, (200, {"redriven": {}})),
    Door(sample("quarantine_repair"), OPERATE, NO_ENTRY, right=404, unreached=NO_ENTRY),
    Door(sample("registry_put"), OPERATE, (403, {}), "*"),
    Door(sample("registry_read"), OPERATE, (200, {"types": 1})),
    Door(retained("retention_set"), OPERATE, (200, {"max_age_days": 90}), "*", project=True, turn=CREATES),
    Door(retained("retention_read"), OPERATE, (200, {"max_age_days": None}), project=True),
    Door(sample("retention_list"), OPERATE, (200, {"policies": []}), "*", unreached=(200, {"policies": []})),
    Door(sample("retention_plan"), OPERATE, (200, {"events": 0, "head": 0}), "catalog:orders"),
    Door(retained("retention_plan"), OPERATE, (200, {"events": 0, "head": 0}), "*", project=True),
    Door(sample("profile_set"), OPERATE, (200, {"set_by": "operator"}), "*", project=True, turn=CREATES),
    Door(sample("profile_read"), OPERATE, (200, {"set_by": "default"}), project=True),
    Door(sample("profile_list"), OPERATE, (200, {"profiles": []})),
    Door(sample("marker_delete"), WRITE, (200, {"accepted": False}), "runtime:rt-1"),
    Door(sample("grant_revoke"), OPERATE, NOT_FOUND, "runtime:rt-1"),
    Door(sample("target_delete"), OPERATE, (200, {"deleted": False}), "*"),
)

OPEN: Mapping[str, int] = {
    "GET /health": 200,
    "GET /openapi.json": 200,
    "GET /docs": 200,
    "GET /docs/{file}": 404,
    "GET /console": 200,
    "GET /console/{file}": 404,
    "OPTIONS /{proxy+}": 204,
    "$default": 404,
}
"""Routes that take no token, and what they answer."""


@dataclass(frozen=True)
class Message:
    """A message as the owner of the first tenant's data sends it, once connected."""

    kind: str
    payload: dict[str, Any]
    elsewhere: tuple[tuple[str, Mapping[str, Any]], ...]
    """What a connection of another tenant hears: types, and parts of the payloads."""
    needs: Needs = ANY_TOKEN
    partition: str | None = None
    unreached: tuple[str, Mapping[str, Any]] = ("error", {"code": "forbidden"})


OTHER_NAMES = {
    "order-17-paid": "order-18-paid",
    "evt-1": "evt-2",
    "msg-1": "msg-2",
    "gate": "door",
    "build-17-done": "build-18-done",
    "archive-hub": "other-hub",
}


def renamed(door: Door) -> Door:
    """The same request under names that the first tenant does not use."""
    text = json.dumps(door.event)
    for name, other in OTHER_NAMES.items():
        text = text.replace(name, other)
    return replace(door, event=json.loads(text))


ITEM = json.loads(sample("submit")["body"])
MESSAGES = (
    Message("connect", {"client_id": "C1", "project": PROJECT}, (("connected", {"server_last_committed_id": 0}),)),
    Message("sync", json.loads(sample("sync")["body"]), (("sync_response", {"events": []}),), READ, "orders"),
    Message("sync", {"since_committed_id": 0}, (("sync_response", {"events": []}),), READ, "*"),
    Message("subscribe", {"kind": "session", "session_id": "sess-1"}, (("subscribed", {}),), READ, "session:sess-1"),
    Message(
        "subscribe",
        {"kind": "stream", "runtime_id": "rt-1", "stream_id": "delivery"},
        (("subscribed", {"snapshot_high_watermark_seq_no": 0}),),
        READ,
        "runtime:rt-1",
    ),
    Message(
        "subscribe",
        {"kind": "stream", "runtime_id": "rt-1", "stream_id": "delivery", "cursor": CURSOR},
        (("error", {"code": "bad_request"}),),
        READ,
        "runtime:rt-1",
    ),
    Message("unsubscribe", {"subscription_id": "sync"}, ()),
    Message("heartbeat", {}, (("heartbeat_ack", {}),)),
    Message(
        "submit_events", ITEM, (("submit_events_result", COMMITTED),), WRITE, "orders",
        unreached=("submit_events_result", FORBIDDEN_RESULTS),
    ),
    Message("disconnect", {}, ()),
)  # fmt: skip


def verifier() -> Tokens:
    return Tokens(ISSUER, AUDIENCE, lambda: [SECRET])


def token(secret: str = SECRET, lasts_s: int = 3600, **claims: Any) -> str:
    stated = {"client_id": "C1", "tenant": TENANT, "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + lasts_s}
    return jwt.encode({**stated, **claims}, secret, algorithm="HS256")


def claims_for(needed: Door | Message, **other: Any) -> dict[str, Any]:
    """No more rights than it takes; where no partition is asked for, every one."""
    project = isinstance(needed, Message) or needed.project
    stated = {
        "projects": [PROJECT] if project else [],
        "partitions": [needed.partition or "*"],
        "roles": [min(roles) for roles in needed.needs],
    }
    return {**stated, **other}


def lacking_a_role(needs: Needs) -> list[list[str]]:
    """For each role that is needed, all the others."""
    return [sorted(ROLES - roles) for roles in needs]


def elsewhere_than(partition: str) -> list[str]:
    """Patterns that do not match it: next to it by name, or, for the whole project, short of everything."""
    return [f"{partition}-other"] if partition != "*" else ["orders", "session:*", "runtime:*"]
