"""The hub's error objects as exceptions; what an object leaves out follows from its code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace_client.streams.sdk_errors import Conflict, CursorExpired, SdkError, StreamDegraded

_CLASSES: dict[str, type[SdkError]] = {
    "SDK_RUNTIME_CONFLICT": Conflict,
    "SDK_RUNTIME_CURSOR_EXPIRED": CursorExpired,
    "SDK_RUNTIME_STREAM_DEGRADED": StreamDegraded,
}
_STATUS = {
    "SDK_RUNTIME_INVALID_CURSOR": 400,
    "SDK_SECURITY_AUTH_REQUIRED": 401,
    "SDK_RUNTIME_NOT_FOUND": 404,
    "SDK_RUNTIME_CURSOR_EXPIRED": 410,
    "SDK_SECURITY_RATE_LIMITED": 429,
    "SDK_INTERNAL_UNAVAILABLE": 503,
}
_STATUS_OF_CATEGORY = {"Validation": 400, "Security": 403, "Runtime": 409, "Capability": 409}
_CODES = {
    400: "SDK_VALIDATION_INVALID_ARGUMENT",
    401: "SDK_SECURITY_AUTH_REQUIRED",
    403: "SDK_SECURITY_AUTHZ_DENIED",
    404: "SDK_RUNTIME_NOT_FOUND",
    413: "SDK_VALIDATION_BATCH_TOO_LARGE",
    429: "SDK_SECURITY_RATE_LIMITED",
    500: "SDK_INTERNAL_ERROR",
    502: "SDK_INTERNAL_UNAVAILABLE",
    503: "SDK_INTERNAL_UNAVAILABLE",
    504: "SDK_INTERNAL_UNAVAILABLE",
}


def is_error(body: Mapping[str, Any]) -> bool:
    return isinstance(body.get("machine_code"), str)


def error_of(body: Mapping[str, Any], status: int | None = None) -> SdkError:
    """An error object of T12 as an exception. What it leaves out follows from its code."""
    code, details = str(body["machine_code"]), body.get("details")
    category = str(body.get("category") or _category(code))
    return _CLASSES.get(code, SdkError)(
        code,
        category,
        body.get("retryable") is True,
        body.get("is_user_actionable") is True,
        str(body.get("message", "")),
        details if isinstance(details, dict) else {},
        status or _status(code, category),
    )


def foreign_error(status: int, body: Mapping[str, Any], retryable: bool) -> SdkError | None:
    """The error of a gateway before the hub, worded as the hub would; None for what is no error (a redirect)."""
    code = _CODES.get(status) or _CODES.get(status // 100 * 100)
    if code is None:
        return None
    details = {"code": body["code"]} if isinstance(body.get("code"), str) else {}
    message = str(body.get("message", "The gateway refused the request."))
    return error_of({"machine_code": code, "retryable": retryable, "message": message, "details": details}, status)


def not_found(message: str, **details: Any) -> SdkError:
    """What the hub would say, found out without asking it."""
    return SdkError("SDK_RUNTIME_NOT_FOUND", "Runtime", False, True, message, details, 404)


def _category(code: str) -> str:
    parts = code.split("_")
    return parts[1].capitalize() if len(parts) > 1 else "Internal"


def _status(code: str, category: str) -> int:
    if code in _STATUS:
        return _STATUS[code]
    return 413 if code.endswith("_TOO_LARGE") else _STATUS_OF_CATEGORY.get(category, 500)
