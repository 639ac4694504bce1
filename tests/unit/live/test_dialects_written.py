"""S14, S16: the core's messages as camelCase clients read them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millrace.live.domain.dialects import write

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
            "payload": {"clientId": "C1", "globalLastCommittedId": 17, **WIRE_LIMITS},
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
