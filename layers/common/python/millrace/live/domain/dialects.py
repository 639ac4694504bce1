"""Dialects: the wire forms of the WebSocket protocol, translated to and from the one form the core speaks (S14, S16).

`snake` is the core's own form. `camel` has flat items with `partitions[]`; `project` has flat items with one
`partition`, a `schemaVersion`, and a connection bound to a project. A connection keeps the dialect of its first
message. Keys inside a caller's `payload` and `meta` are never renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from millrace.live.domain.flat_events import CAMEL, PROJECT, SNAKE, read_item, write_event

__all__ = ["CAMEL", "PROJECT", "SNAKE", "choose", "read", "stops_at_first_rejection", "write", "write_event"]

_ENVELOPE = {"protocolVersion": "protocol_version", "msgId": "msg_id"}
_REQUEST = {
    "clientId": "client_id",
    "projectId": "project",
    "lastCommittedId": "last_committed_id",
    "sinceCommittedId": "since_committed_id",
    "syncToCommittedId": "sync_to_committed_id",
    "subscriptionPartitions": "subscription_partitions",
    "sessionId": "session_id",
    "afterSequence": "after_sequence",
    "runtimeId": "runtime_id",
    "streamId": "stream_id",
    "subscriptionId": "subscription_id",
}
_CODES = {"protocol_version_unsupported": "protocolVersion_unsupported"}


def choose(message: Mapping[str, Any]) -> str:
    """The dialect of a connection, from its first message."""
    if "protocolVersion" not in message:
        return SNAKE
    payload = message.get("payload")
    project = payload.get("projectId") if isinstance(payload, Mapping) else None
    return PROJECT if isinstance(project, str) and project else CAMEL


def stops_at_first_rejection(dialect: str) -> bool:
    """Whether the items after a rejected one are `not_processed` (S16)."""
    return dialect == PROJECT


def read(dialect: str, message: Mapping[str, Any]) -> dict[str, Any]:
    """A client's message in the core's form. What is not understood passes through, for the core to refuse."""
    if dialect == SNAKE:
        return dict(message)
    canonical = {_ENVELOPE.get(key, key): value for key, value in message.items()}
    payload = message.get("payload")
    if isinstance(payload, Mapping):
        request = {_REQUEST.get(key, key): value for key, value in payload.items()}
        events = request.get("events")
        if message.get("type") == "submit_events" and isinstance(events, list):
            request["events"] = [read_item(dialect, item) if isinstance(item, dict) else item for item in events]
        canonical["payload"] = request
    return canonical


def write(dialect: str, message: Mapping[str, Any], *, project: str = "") -> dict[str, Any]:
    """The core's message as the connection's client reads it. `project` is the connection's own."""
    if dialect == SNAKE:
        return dict(message)
    wire = {_name(key): value for key, value in message.items()}
    payload = message.get("payload")
    if isinstance(payload, Mapping):
        wire["payload"] = _WRITERS.get(message.get("type", ""), _plain)(dialect, payload, project)
    return wire


def _plain(_dialect: str, payload: Mapping[str, Any], _project: str) -> dict[str, Any]:
    """Our own keys only: what they hold may be a caller's."""
    return {_name(key): value for key, value in payload.items()}


def _connected(dialect: str, payload: Mapping[str, Any], project: str) -> dict[str, Any]:
    wire: dict[str, Any] = _deep({key: value for key, value in payload.items() if key != "server_last_committed_id"})
    last = payload.get("server_last_committed_id")
    if dialect == CAMEL:  # such a client has named no project: it is told none
        return {key: value for key, value in wire.items() if key != "projectId"} | {"globalLastCommittedId": last}
    return wire | {"projectId": project or wire.get("projectId"), "projectLastCommittedId": last}


def _submit_events_result(dialect: str, payload: Mapping[str, Any], _project: str) -> dict[str, Any]:
    return {"results": [_result(dialect, result) for result in payload.get("results", ())]}


def _result(dialect: str, result: Mapping[str, Any]) -> dict[str, Any]:
    wire = {_name(key): value for key, value in result.items() if key != "status_updated_at"}
    if "errors" in wire:
        wire["errors"] = [{**error, "field": _item_field(dialect, error["field"])} for error in wire["errors"]]
    committed = result.get("status") == "committed"
    wire["serverTs" if committed and dialect == PROJECT else "created"] = result.get("status_updated_at")
    return wire


def _item_field(dialect: str, field: str) -> str:
    """Where the client finds the mistake in the item it sent."""
    if field == "client_id":
        return "meta.clientId"
    if dialect == PROJECT and field.startswith("partitions"):
        return "partition"
    return "projectId" if field == "project" else field.removeprefix("event.")


def _sync_response(dialect: str, payload: Mapping[str, Any], project: str) -> dict[str, Any]:
    wire = _plain(dialect, payload, project)
    if dialect == PROJECT:
        wire.pop("partitions", None)
        wire["projectId"] = project
    return wire | {"events": [write_event(dialect, event, project) for event in payload.get("events", ())]}


def _error(_dialect: str, payload: Mapping[str, Any], _project: str) -> dict[str, Any]:
    wire: dict[str, Any] = _deep(payload)
    wire["code"] = _CODES.get(wire.get("code", ""), wire.get("code"))
    details = wire.get("details")
    if isinstance(details, dict) and isinstance(details.get("field"), str):
        details["field"] = _name(details["field"])
    return wire


def _deep(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_name(key): _deep(member) for key, member in value.items()}
    return [_deep(member) for member in value] if isinstance(value, (list, tuple)) else value


def _name(key: str) -> str:
    """A name of ours in camelCase; a path or a dotted name stays as it is."""
    if key == "project":
        return "projectId"
    head, *tail = key.split("_")
    return head + "".join(map(str.capitalize, tail)) if key.isidentifier() else key


_WRITERS: Mapping[str, Callable[[str, Mapping[str, Any], str], dict[str, Any]]] = {
    "connected": _connected,
    "submit_events_result": _submit_events_result,
    "sync_response": _sync_response,
    "event_broadcast": write_event,
    "error": _error,
}
