"""S14, S16: what camelCase clients send and read, and what of it is stored and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.canonical import canonical
from millrace.ledger.domain.page import Draft
from millrace.live.domain.dialects import choose, read, stops_at_first_rejection, write, write_event
from millrace.sync.domain.submit import Refusal, check_item

ME = Identity("C1", "default", frozenset({"P1"}), ("*",), frozenset({"producer"}), "default")

SNAKE_ITEM: dict[str, Any] = {
    "id": "e1",
    "partitions": ["a", "b"],
    "event": {"type": "folder.created", "payload": {"folder_id": "A"}},
}
CAMEL_ITEM: dict[str, Any] = {
    "id": "e1",
    "partitions": ["a", "b"],
    "projectId": "P1",
    "userId": "U1",
    "type": "folder.created",
    "payload": {"folder_id": "A", "clientId": "kept"},
    "meta": {"clientId": "C1", "clientTs": 1738451200000, "trace_id": "t"},
}
PROJECT_ITEM: dict[str, Any] = {
    "id": "e1",
    "partition": "a",
    "projectId": "P1",
    "userId": "U1",
    "type": "folder.created",
    "schemaVersion": 3,
    "payload": {"folder_id": "A", "clientId": "kept"},
    "meta": {"clientId": "C1", "clientTs": 1738451200000},
}
ITEMS = {"snake": SNAKE_ITEM, "camel": CAMEL_ITEM, "project": PROJECT_ITEM}


def read_item(dialect: str, item: Any) -> Any:
    envelope = "protocol_version" if dialect == "snake" else "protocolVersion"
    message = {"type": "submit_events", envelope: "1.0", "payload": {"events": [item]}}
    return read(dialect, message)["payload"]["events"][0]


def drafted(dialect: str, item: Any) -> Draft:
    draft = check_item(read_item(dialect, item), ME, "open")
    assert isinstance(draft, Draft), draft
    return draft


def committed(dialect: str, item: Any) -> dict[str, Any]:
    """The item after a trip through the log, as the core hands it to a reader."""
    draft = drafted(dialect, item)
    return {
        "committed_id": 7,
        "id": draft.id,
        "client_id": ME.client_id,
        "partitions": list(draft.partitions),
        **json.loads(draft.body),
        "status_updated_at": 1738451205000,
    }


@pytest.mark.parametrize(
    ("message", "dialect"),
    [
        ({"type": "connect", "protocol_version": "1.0", "payload": {"token": "t", "client_id": "C1"}}, "snake"),
        ({"type": "connect", "protocol_version": "1.0", "payload": {"projectId": "P1"}}, "snake"),
        ({"type": "connect", "protocolVersion": "1.0", "payload": {"token": "t", "clientId": "C1"}}, "camel"),
        ({"type": "connect", "protocolVersion": "1.0", "payload": {"projectId": ""}}, "camel"),
        ({"type": "connect", "protocolVersion": "1.0", "payload": {"projectId": ["P1"]}}, "camel"),
        ({"type": "connect", "protocolVersion": "9", "payload": {"projectId": "P1"}}, "project"),
        ({"protocolVersion": None, "payload": "x"}, "camel"),
        ({}, "snake"),
    ],
)
def test_s16_the_first_message_chooses_the_dialect(message: Mapping[str, Any], dialect: str) -> None:
    assert choose(message) == dialect


def test_s16_only_project_clients_stop_at_the_first_rejection() -> None:
    assert [name for name in ("snake", "camel", "project") if stops_at_first_rejection(name)] == ["project"]


READS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "camel",
        {
            "type": "connect",
            "protocolVersion": "1.0",
            "msgId": "m1",
            "timestamp": 5,
            "payload": {"token": "t", "clientId": "C1", "lastCommittedId": 4},
        },
        {
            "type": "connect",
            "protocol_version": "1.0",
            "msg_id": "m1",
            "timestamp": 5,
            "payload": {"token": "t", "client_id": "C1", "last_committed_id": 4},
        },
    ),
    (
        "project",
        {
            "type": "connect",
            "protocolVersion": "1.0",
            "payload": {"token": "t", "clientId": "C1", "projectId": "P1"},
        },
        {
            "type": "connect",
            "protocol_version": "1.0",
            "payload": {"token": "t", "client_id": "C1", "project": "P1"},
        },
    ),
    (
        "camel",
        {"type": "submit_events", "protocolVersion": "1.0", "msgId": "m2", "payload": {"events": [CAMEL_ITEM]}},
        {
            "type": "submit_events",
            "protocol_version": "1.0",
            "msg_id": "m2",
            "payload": {
                "events": [
                    {
                        "id": "e1",
                        "partitions": ["a", "b"],
                        "project": "P1",
                        "client_id": "C1",
                        "event": {
                            "type": "folder.created",
                            "payload": {"folder_id": "A", "clientId": "kept"},
                            "userId": "U1",
                            "meta": {"clientTs": 1738451200000, "trace_id": "t"},
                        },
                        "meta": {"clientId": "C1", "clientTs": 1738451200000, "trace_id": "t"},
                    }
                ]
            },
        },
    ),
    (
        "project",
        {"type": "submit_events", "protocolVersion": "1.0", "payload": {"events": [PROJECT_ITEM]}},
        {
            "type": "submit_events",
            "protocol_version": "1.0",
            "payload": {
                "events": [
                    {
                        "id": "e1",
                        "partitions": ["a"],
                        "project": "P1",
                        "client_id": "C1",
                        "event": {
                            "type": "folder.created",
                            "payload": {"folder_id": "A", "clientId": "kept"},
                            "schemaVersion": 3,
                            "userId": "U1",
                            "meta": {"clientTs": 1738451200000},
                        },
                        "meta": {"clientId": "C1", "clientTs": 1738451200000},
                    }
                ]
            },
        },
    ),
    (
        "camel",
        {
            "type": "sync",
            "protocolVersion": "1.0",
            "payload": {"partitions": ["a"], "sinceCommittedId": 3, "limit": 500, "subscriptionPartitions": ["a", "b"]},
        },
        {
            "type": "sync",
            "protocol_version": "1.0",
            "payload": {
                "partitions": ["a"],
                "since_committed_id": 3,
                "limit": 500,
                "subscription_partitions": ["a", "b"],
            },
        },
    ),
    (
        "project",
        {
            "type": "sync",
            "protocolVersion": "1.0",
            "payload": {"projectId": "P1", "sinceCommittedId": 3, "limit": 500, "syncToCommittedId": 9},
        },
        {
            "type": "sync",
            "protocol_version": "1.0",
            "payload": {"project": "P1", "since_committed_id": 3, "limit": 500, "sync_to_committed_id": 9},
        },
    ),
    (
        "camel",
        {"type": "heartbeat", "protocolVersion": "1.0", "payload": {}},
        {"type": "heartbeat", "protocol_version": "1.0", "payload": {}},
    ),
    (
        "project",
        {"type": "disconnect", "protocolVersion": "1.0", "payload": {"reason": "bye"}},
        {"type": "disconnect", "protocol_version": "1.0", "payload": {"reason": "bye"}},
    ),
    (
        "camel",
        {
            "type": "subscribe",
            "protocolVersion": "1.0",
            "payload": {"kind": "session", "sessionId": "s", "afterSequence": 0},
        },
        {
            "type": "subscribe",
            "protocol_version": "1.0",
            "payload": {"kind": "session", "session_id": "s", "after_sequence": 0},
        },
    ),
    (
        "project",
        {
            "type": "subscribe",
            "protocolVersion": "1.0",
            "payload": {"kind": "stream", "runtimeId": "r", "streamId": "s", "start": "head", "cursor": "c"},
        },
        {
            "type": "subscribe",
            "protocol_version": "1.0",
            "payload": {"kind": "stream", "runtime_id": "r", "stream_id": "s", "start": "head", "cursor": "c"},
        },
    ),
    (
        "camel",
        {"type": "unsubscribe", "protocolVersion": "1.0", "payload": {"subscriptionId": "s1"}},
        {"type": "unsubscribe", "protocol_version": "1.0", "payload": {"subscription_id": "s1"}},
    ),
]


@pytest.mark.parametrize(("dialect", "wire", "core"), READS)
def test_s16_a_camel_message_reads_as_the_core_speaks(dialect: str, wire: dict[str, Any], core: dict[str, Any]) -> None:
    assert read(dialect, wire) == core


@pytest.mark.parametrize("message", [core for _, _, core in READS])
def test_s14_snake_case_passes_unchanged_both_ways(message: dict[str, Any]) -> None:
    assert read("snake", message) == message
    assert write("snake", message, project="P1") == message
    assert write_event("snake", message) == message


ODD: list[Any] = [None, 5, "x", [], {}, [5], {"events": 5}, {"events": [5, None, {}]}, {"clientId": {}, "projectId": 1}]


@pytest.mark.parametrize("dialect", ["snake", "camel", "project"])
@pytest.mark.parametrize("payload", ODD)
def test_s16_what_is_not_understood_passes_through(dialect: str, payload: Any) -> None:
    message = read(dialect, {"type": "submit_events", "protocolVersion": 1, "msgId": 7, "payload": payload})
    if not isinstance(payload, dict):
        assert message["payload"] == payload
    assert read(dialect, {}) == {}
    assert read(dialect, {"type": ["sync"], "payload": payload})["type"] == ["sync"]


@pytest.mark.parametrize(
    ("dialect", "change", "field"),
    [
        ("camel", {"type": 5}, "type"),
        ("camel", {"payload": ...}, "payload"),
        ("camel", {"partitions": ...}, "partitions"),
        ("camel", {"partitions": ["a", ""]}, "partitions[1]"),
        ("camel", {"meta": "x"}, "meta"),
        ("camel", {"meta": {"clientId": 5}}, "meta.clientId"),
        ("project", {"meta": {"clientId": "C2"}}, "meta.clientId"),
        ("project", {"type": ...}, "type"),
        ("project", {"partition": ...}, "partition"),
        ("project", {"partition": ["a"]}, "partition"),
    ],
)
def test_s16_a_refusal_names_the_field_that_the_client_sent(dialect: str, change: dict[str, Any], field: str) -> None:
    sent = {key: value for key, value in {**ITEMS[dialect], **change}.items() if value is not ...}
    refusal = check_item(read_item(dialect, sent), ME, "open")
    assert isinstance(refusal, Refusal)
    result = {
        "id": "e1",
        "status": "rejected",
        "reason": refusal.reason,
        "errors": refusal.errors,
        "status_updated_at": 5,
    }
    message = {"type": "submit_events_result", "protocol_version": "1.0", "payload": {"results": [result]}}
    (written,) = write(dialect, message, project="P1")["payload"]["results"]
    assert [error["field"] for error in written["errors"]] == [field]


CONNECTED: dict[str, Any] = {
    "type": "connected",
    "protocol_version": "1.0",
    "msg_id": "m1",
    "payload": {
        "client_id": "C1",
        "project": "P1",
        "server_time": 50,
        "server_last_committed_id": 17,
        "limits": {"max_batch_size": 100, "sync_limit_min": 50},
        "capabilities": ["sync", "sdk.capability.receipt_terminality"],
    },
}
RESULTS: dict[str, Any] = {
    "type": "submit_events_result",
    "protocol_version": "1.0",
    "msg_id": "m2",
    "payload": {
        "results": [
            {"id": "e1", "status": "committed", "committed_id": 8, "status_updated_at": 51},
            {
                "id": "e2",
                "status": "rejected",
                "reason": "validation_failed",
                "errors": [{"field": "event.payload.my_key", "message": "is unknown"}],
                "status_updated_at": 52,
            },
            {
                "id": "e3",
                "status": "not_processed",
                "reason": "prior_item_failed",
                "blocked_by_id": "e2",
                "status_updated_at": 53,
            },
        ]
    },
}
EVENT: dict[str, Any] = {
    "committed_id": 7,
    "id": "e1",
    "client_id": "C1",
    "partitions": ["a", "b"],
    "event": {
        "type": "folder.created",
        "payload": {"folder_id": "A"},
        "schemaVersion": 3,
        "userId": "U1",
        "meta": {"clientTs": 40, "trace_id": "t"},
    },
    "meta": {"clientId": "C1", "clientTs": 40, "trace_id": "t"},
    "status_updated_at": 51,
}
CAMEL_EVENT: dict[str, Any] = {
    "id": "e1",
    "partitions": ["a", "b"],
    "projectId": "P1",
    "userId": "U1",
    "type": "folder.created",
    "payload": {"folder_id": "A"},
    "meta": {"clientId": "C1", "clientTs": 40, "trace_id": "t"},
    "committedId": 7,
    "created": 51,
}
PROJECT_EVENT: dict[str, Any] = {
    "id": "e1",
    "projectId": "P1",
    "userId": "U1",
    "partition": "a",
    "committedId": 7,
    "type": "folder.created",
    "schemaVersion": 3,
    "payload": {"folder_id": "A"},
    "meta": {"clientId": "C1", "clientTs": 40, "trace_id": "t"},
    "serverTs": 51,
}
PAGE: dict[str, Any] = {
    "type": "sync_response",
    "protocol_version": "1.0",
    "msg_id": "m3",
    "payload": {
        "partitions": ["a"],
        "events": [EVENT],
        "next_since_committed_id": 7,
        "sync_to_committed_id": 9,
        "has_more": True,
        "pruned_through_committed_id": 2,
    },
}
ERROR: dict[str, Any] = {
    "type": "error",
    "protocol_version": "1.0",
    "msg_id": "m4",
    "payload": {
        "code": "rate_limited",
        "message": "Slow down.",
        "details": {"retry_after_ms": 50, "max_bytes": 9, "field": "since_committed_id"},
    },
}
UNSUPPORTED: dict[str, Any] = {
    "type": "error",
    "protocol_version": "1.0",
    "payload": {"code": "protocol_version_unsupported", "message": "Only 1.0.", "details": {}},
}
TAIL: dict[str, Any] = {
    "type": "event",
    "protocol_version": "1.0",
    "payload": {"subscription_id": "s1", "phase": "live", "event": {"event_id": "x", "payload": {"a_b": {"c_d": 1}}}},
}
SUBSCRIBED: dict[str, Any] = {
    "type": "subscribed",
    "protocol_version": "1.0",
    "payload": {"subscription_id": "s1", "snapshot_high_watermark_seq_no": 4},
}
BEAT: dict[str, Any] = {"type": "heartbeat_ack", "protocol_version": "1.0", "payload": {"server_time": 5}}
BROADCAST: dict[str, Any] = {"type": "event_broadcast", "protocol_version": "1.0", "payload": EVENT}

WIRE_ERROR = {
    "type": "error",
    "protocolVersion": "1.0",
    "msgId": "m4",
    "payload": {
        "code": "rate_limited",
        "message": "Slow down.",
        "details": {"retryAfterMs": 50, "maxBytes": 9, "field": "sinceCommittedId"},
    },
}
WIRE_UNSUPPORTED = {
    "type": "error",
    "protocolVersion": "1.0",
    "payload": {"code": "protocolVersion_unsupported", "message": "Only 1.0.", "details": {}},
}
WIRE_TAIL = {
    "type": "event",
    "protocolVersion": "1.0",
    "payload": {"subscriptionId": "s1", "phase": "live", "event": {"event_id": "x", "payload": {"a_b": {"c_d": 1}}}},
}
WIRE_SUBSCRIBED = {
    "type": "subscribed",
    "protocolVersion": "1.0",
    "payload": {"subscriptionId": "s1", "snapshotHighWatermarkSeqNo": 4},
}
WIRE_BEAT = {"type": "heartbeat_ack", "protocolVersion": "1.0", "payload": {"serverTime": 5}}
WIRE_REJECTED = {
    "id": "e2",
    "status": "rejected",
    "reason": "validation_failed",
    "errors": [{"field": "payload.my_key", "message": "is unknown"}],
    "created": 52,
}
WIRE_NOT_PROCESSED = {
    "id": "e3",
    "status": "not_processed",
    "reason": "prior_item_failed",
    "blockedById": "e2",
    "created": 53,
}
WIRE_LIMITS = {
    "serverTime": 50,
    "limits": {"maxBatchSize": 100, "syncLimitMin": 50},
    "capabilities": ["sync", "sdk.capability.receipt_terminality"],
}

WRITES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "camel",
        CONNECTED,
        {
            "type": "connected",
            "protocolVersion": "1.0",
            "msgId": "m1",
            "payload": {"clientId": "C1", "projectId": "P1", "globalLastCommittedId": 17, **WIRE_LIMITS},
        },
    ),
    (
        "project",
        CONNECTED,
        {
            "type": "connected",
            "protocolVersion": "1.0",
            "msgId": "m1",
            "payload": {"clientId": "C1", "projectId": "P1", "projectLastCommittedId": 17, **WIRE_LIMITS},
        },
    ),
    (
        "camel",
        RESULTS,
        {
            "type": "submit_events_result",
            "protocolVersion": "1.0",
            "msgId": "m2",
            "payload": {
                "results": [
                    {"id": "e1", "status": "committed", "committedId": 8, "created": 51},
                    WIRE_REJECTED,
                    WIRE_NOT_PROCESSED,
                ]
            },
        },
    ),
    (
        "project",
        RESULTS,
        {
            "type": "submit_events_result",
            "protocolVersion": "1.0",
            "msgId": "m2",
            "payload": {
                "results": [
                    {"id": "e1", "status": "committed", "committedId": 8, "serverTs": 51},
                    WIRE_REJECTED,
                    WIRE_NOT_PROCESSED,
                ]
            },
        },
    ),
    (
        "camel",
        PAGE,
        {
            "type": "sync_response",
            "protocolVersion": "1.0",
            "msgId": "m3",
            "payload": {
                "partitions": ["a"],
                "events": [CAMEL_EVENT],
                "nextSinceCommittedId": 7,
                "syncToCommittedId": 9,
                "hasMore": True,
                "prunedThroughCommittedId": 2,
            },
        },
    ),
    (
        "project",
        PAGE,
        {
            "type": "sync_response",
            "protocolVersion": "1.0",
            "msgId": "m3",
            "payload": {
                "projectId": "P1",
                "events": [PROJECT_EVENT],
                "nextSinceCommittedId": 7,
                "syncToCommittedId": 9,
                "hasMore": True,
                "prunedThroughCommittedId": 2,
            },
        },
    ),
    ("camel", BROADCAST, {"type": "event_broadcast", "protocolVersion": "1.0", "payload": CAMEL_EVENT}),
    ("project", BROADCAST, {"type": "event_broadcast", "protocolVersion": "1.0", "payload": PROJECT_EVENT}),
    *[
        (dialect, core, wire)
        for dialect in ("camel", "project")
        for core, wire in [
            (ERROR, WIRE_ERROR),
            (UNSUPPORTED, WIRE_UNSUPPORTED),
            (TAIL, WIRE_TAIL),
            (SUBSCRIBED, WIRE_SUBSCRIBED),
            (BEAT, WIRE_BEAT),
        ]
    ],
]


@pytest.mark.parametrize(("dialect", "core", "wire"), WRITES)
def test_s16_the_cores_message_is_written_as_the_client_reads(
    dialect: str, core: dict[str, Any], wire: dict[str, Any]
) -> None:
    before = json.dumps(core)
    assert write(dialect, core, project="P1") == wire
    assert json.dumps(core) == before


def test_s16_a_snake_event_reads_in_both_other_dialects() -> None:
    event = committed("snake", SNAKE_ITEM)
    assert write_event("camel", event, "P1") == {
        "id": "e1",
        "partitions": ["a", "b"],
        "projectId": "P1",
        "type": "folder.created",
        "payload": {"folder_id": "A"},
        "meta": {"clientId": "C1", "clientTs": 1738451205000},
        "committedId": 7,
        "created": 1738451205000,
    }
    assert write_event("project", event, "P1") == {
        "id": "e1",
        "projectId": "P1",
        "partition": "a",
        "committedId": 7,
        "type": "folder.created",
        "schemaVersion": 1,
        "payload": {"folder_id": "A"},
        "meta": {"clientId": "C1", "clientTs": 1738451205000},
        "serverTs": 1738451205000,
    }


@pytest.mark.parametrize("dialect", ["camel", "project"])
def test_s16_a_flat_event_reads_in_snake_case_with_its_meta_as_sent(dialect: str) -> None:
    item = ITEMS[dialect]
    event = write_event("snake", committed(dialect, item))
    assert (event["event"]["type"], event["event"]["payload"]) == (item["type"], item["payload"])
    assert event["meta"] == item["meta"]


def test_s16_a_project_event_keeps_its_content_for_camel_clients_and_back() -> None:
    assert write_event("camel", committed("project", PROJECT_ITEM), "P1") == {
        **{key: value for key, value in PROJECT_ITEM.items() if key not in ("partition", "schemaVersion")},
        "partitions": ["a"],
        "committedId": 7,
        "created": 1738451205000,
    }
    back = write_event("project", committed("camel", CAMEL_ITEM), "P1")
    assert (back["schemaVersion"], back["partition"], back["meta"]) == (1, "a", CAMEL_ITEM["meta"])


@pytest.mark.parametrize("given_version", ["2", 0, -1, True, 1.5, None, [2]])
def test_s16_a_schema_version_that_no_client_could_read_is_written_as_1(given_version: Any) -> None:
    item = {**SNAKE_ITEM, "event": {**SNAKE_ITEM["event"], "schemaVersion": given_version, "userId": 5}}
    event = write_event("project", committed("snake", item), "P1")
    assert event["schemaVersion"] == 1
    assert "userId" not in event


def test_s16_a_snake_callers_meta_cannot_pose_as_another_client() -> None:
    item = {**SNAKE_ITEM, "meta": {"clientId": "C2", "clientTs": 3, "x": 1}}
    assert write_event("camel", committed("snake", item))["meta"] == {"clientId": "C1", "clientTs": 3, "x": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("dialect", ["camel", "project"])
@given(payload=JSON, client_ts=JSON, extra=st.dictionaries(st.text(max_size=8), JSON, max_size=2))
def test_s16_payload_and_client_ts_come_back_exactly_as_sent(
    dialect: str, payload: Any, client_ts: Any, extra: dict[str, Any]
) -> None:
    meta = {**extra, "clientId": "C1", "clientTs": client_ts}
    item = {**ITEMS[dialect], "payload": payload, "meta": meta}
    for reader in ("camel", "project"):
        event = json.loads(json.dumps(write_event(reader, committed(dialect, item), "P1")))
        assert canonical([event["payload"], event["meta"]]) == canonical([payload, meta])


SAME = [
    {"meta": {**PROJECT_ITEM["meta"], "clientId": "C2"}},
    {"meta": {"clientTs": PROJECT_ITEM["meta"]["clientTs"]}},
    {"projectId": "P2"},
    {"projectId": ...},
]
OTHER = [
    {"meta": {**PROJECT_ITEM["meta"], "clientTs": 1}},
    {"meta": {**PROJECT_ITEM["meta"], "extra": 1}},
    {"meta": {}},
    {"schemaVersion": 4},
    {"userId": "U2"},
    {"userId": ...},
    {"type": "folder.deleted"},
    {"payload": {}},
    {"partition": "b"},
]


def fingerprint(dialect: str, change: dict[str, Any]) -> bytes:
    item = {**ITEMS[dialect], "meta": PROJECT_ITEM["meta"], **change}
    if dialect == "camel" and "partition" in item:
        item["partitions"] = [item.pop("partition")]
    core = read_item(dialect, {key: value for key, value in item.items() if value is not ...})
    core.pop("client_id", None)
    draft = check_item(core, ME, "open")
    assert isinstance(draft, Draft), draft
    return draft.digest


@pytest.mark.parametrize("dialect", ["camel", "project"])
@pytest.mark.parametrize("change", SAME)
def test_s16_client_and_project_are_not_compared(dialect: str, change: dict[str, Any]) -> None:
    assert fingerprint(dialect, change) == fingerprint(dialect, {})


@pytest.mark.parametrize("dialect", ["camel", "project"])
@pytest.mark.parametrize("change", OTHER)
def test_s16_everything_else_is_compared(dialect: str, change: dict[str, Any]) -> None:
    assert fingerprint(dialect, change) != fingerprint(dialect, {})
