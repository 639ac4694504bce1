"""The hub's WebSocket protocol as a client sees it: envelopes, what fits into one, and its errors as exceptions."""

from __future__ import annotations

import json
from typing import Any

from millrace_client.errors import ClientError, Refused, Unreachable

VERSION = "1.0"
MOST_ITEMS = 100
MOST_BYTES = 120_000
"""Of one message; the hub takes 128 KB, and the envelope needs a little."""
ENVELOPE_BYTES = 500
FRAME_CHARACTERS = 8_000
"""API Gateway takes frames of at most 32 KB, and a character has at most four bytes."""

STATUS = {
    "bad_request": 400,
    "validation_failed": 400,
    "auth_failed": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "too_large": 413,
    "rate_limited": 429,
}
CLOSING = {"auth_failed", "server_error", "protocol_version_unsupported"}

Json = dict[str, Any]


class Lost(Unreachable):
    """The connection ended, or what came over it makes no sense; the cure is a new one."""

    def __init__(self, message: str, retry_after: float = 0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class SubscriptionEnded(Lost):
    """The hub ended a subscription, because events that it had not sent are no longer kept."""

    def __init__(self, message: str, pruned_through: int) -> None:
        super().__init__(message)
        self.pruned_through = pruned_through


class RateLimited(Refused):
    """The same again is welcome after `retry_after` seconds."""

    @property
    def retry_after(self) -> float:
        try:
            return max(0.0, float(self.details.get("retry_after_ms", 0)) / 1000)
        except (TypeError, ValueError):
            return 0.0


def compact(value: Any) -> str:
    """JSON as it goes out. Raises ValueError for what JSON or UTF-8 cannot carry."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("\ufffd", "\\ufffd")
    text.encode()
    return text


def message(kind: str, payload: Json, msg_id: str) -> str:
    return compact({"type": kind, "protocol_version": VERSION, "msg_id": msg_id, "payload": payload})


def frames(text: str) -> str | list[str]:
    """A short message as it is; a long one in pieces that each fit into a frame."""
    if len(text) <= FRAME_CHARACTERS:
        return text
    return [text[start : start + FRAME_CHARACTERS] for start in range(0, len(text), FRAME_CHARACTERS)]


def parse(raw: str | bytes) -> tuple[str, str | None, Json]:
    """Type, msg_id and payload. Raises ValueError."""
    content = json.loads(raw)
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise ValueError("a message without a type")  # noqa: TRY004
    payload = content.get("payload")
    if not isinstance(payload, dict):
        payload = {}
    return content["type"], content.get("msg_id"), payload


def error_of(payload: Json) -> ClientError:
    """What an `error` message means to whoever asked."""
    code, text = str(payload.get("code", "error")), str(payload.get("message", ""))
    details = _details(payload)
    if code == "server_error":
        return Lost(f"server_error: {text}")
    if code == "rate_limited":
        if "retry_after_ms" in payload:
            details = {"retry_after_ms": payload["retry_after_ms"]} | details
        return RateLimited(STATUS[code], code, text, details)
    return Refused(STATUS.get(code, 400), code, text, details)


def end_of(payload: Json) -> SubscriptionEnded | None:
    """The end of a subscription, if this `error` tells of one."""
    details = _details(payload)
    inside = details["details"] if isinstance(details.get("details"), dict) else details
    if "subscription_id" not in inside:
        return None
    floor = inside.get("floor_seq_no")
    through = floor - 1 if isinstance(floor, int) else inside.get("prunedThrough")
    return SubscriptionEnded(str(payload.get("message", "")), through if isinstance(through, int) else 0)


def _details(payload: Json) -> Json:
    details = payload.get("details")
    return details if isinstance(details, dict) else {}
