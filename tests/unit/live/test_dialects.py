"""S14, S16: which dialect a client speaks, and what its messages mean to the core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from millrace.live.domain.dialects import choose, read, stops_at_first_rejection, write, write_event
from millrace.sync.domain.as_sent import AsSent
from millrace.sync.domain.submit import Refusal, check_item
from tests.unit.live.dialect_items import CAMEL_ITEM, ITEMS, ME, PROJECT_ITEM, read_item


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
                        "as": AsSent("camel"),
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
                        "as": AsSent("project"),
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
        ("project", {"schemaVersion": 0}, "schemaVersion"),
        ("project", {"schemaVersion": "3"}, "schemaVersion"),
        ("camel", {"schemaVersion": True}, "schemaVersion"),
        ("camel", {"userId": 5}, "userId"),
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
