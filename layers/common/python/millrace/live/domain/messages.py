"""The WebSocket's envelope and limits (S12, S14, S15), in the one form the core speaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from millrace.ledger.domain.errors import MillraceError
from millrace.streams.domain.errors import SdkError
from millrace.sync.domain.read import LIMIT_DEFAULT, LIMIT_MAX, LIMIT_MIN
from millrace.sync.domain.submit import MAX_BATCH, MAX_EVENT_BYTES, MAX_PARTITIONS

PROTOCOL = "1.0"
MAX_MESSAGE_BYTES = 128_000
PAGE_BYTES = 100 * 1024
MAX_MESSAGES_PER_SECOND = 200
MAX_IN_FLIGHT = 200
CONNECT_SECONDS = 15
"""How long a socket may be open without having said `connect`."""
CLOSING = frozenset({"auth_failed", "server_error", "protocol_version_unsupported"})

LIMITS = {
    "max_message_bytes": MAX_MESSAGE_BYTES,
    "max_event_bytes": MAX_EVENT_BYTES,
    "max_batch_size": MAX_BATCH,
    "max_partitions": MAX_PARTITIONS,
    "sync_limit_min": LIMIT_MIN,
    "sync_limit_default": LIMIT_DEFAULT,
    "sync_limit_max": LIMIT_MAX,
    "sync_page_bytes": PAGE_BYTES,
    "messages_per_second": MAX_MESSAGES_PER_SECOND,
    "submits_in_flight": MAX_IN_FLIGHT,
}
CAPABILITIES = ["submit_events", "sync", "subscribe"]

Message = dict[str, Any]


class SocketError(MillraceError):
    """An error of the socket's own; its code is one of S15's."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.socket_code = code


def message(kind: str, payload: Any, msg_id: Any = None) -> Message:
    built: Message = {"type": kind, "protocol_version": PROTOCOL, "payload": payload}
    if msg_id is not None:
        built["msg_id"] = msg_id
    return built


def error_message(error: MillraceError, msg_id: Any = None) -> Message:
    """S15's codes: what HTTP calls too_large or not_found is a bad_request here. An SDK error is in the details."""
    if isinstance(error, SdkError):
        details = error.body()
        code = {403: "forbidden", 429: "rate_limited"}.get(error.status, "bad_request")
    else:
        details = dict(error.details)
        code = error.socket_code if isinstance(error, SocketError) else error.code
    if code in {"too_large", "not_found", "conflict"}:
        code = "bad_request"
    if error.retry_after_ms is not None:
        details["retry_after_ms"] = error.retry_after_ms
    return message("error", {"code": code, "message": error.message, "details": details}, msg_id)


def closes(sent: Mapping[str, Any]) -> bool:
    return sent["type"] == "error" and sent["payload"]["code"] in CLOSING


def to_text(sent: Mapping[str, Any]) -> str:
    return json.dumps(sent, ensure_ascii=False, separators=(",", ":"))
