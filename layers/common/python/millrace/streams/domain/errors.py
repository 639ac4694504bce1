"""The errors of the streams contract (T12). Each has a machine code, and the second word of the code is its category.

SdkError
├── Validation   InvalidArgument, MaxPollEventsExceeded, MaxExtensionKeysExceeded, EventTooLarge, BatchTooLarge
├── Runtime      InvalidState, AlreadyTerminal, Conflict, StreamDegraded, InvalidCursor, CursorExpired, Absent
├── Capability   ContractIncompatible
├── Security     AuthRequired, AuthzDenied, GrantEnded, RateLimited
└── Internal     StorageUnavailable, InternalError
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from millrace.ledger.domain import errors
from millrace.ledger.domain.errors import MillraceError


class SdkError(MillraceError):
    """Base of the contract's errors. The docstring says what happened, `advice` what the caller does about it."""

    retryable: ClassVar[bool] = False
    is_user_actionable: ClassVar[bool] = True
    advice: ClassVar[str] = ""

    @classmethod
    def category(cls) -> str:
        """From the code's infix: SDK_RUNTIME_CONFLICT is of the category Runtime."""
        return cls.code.split("_")[1].capitalize()

    def body(self) -> dict[str, Any]:
        return {
            "machine_code": self.code,
            "category": self.category(),
            "retryable": self.retryable,
            "is_user_actionable": self.is_user_actionable,
            "message": self.message,
            "details": dict(self.details),
        }


class InvalidArgument(SdkError):
    """A field, a query parameter or the request as a whole breaks a rule; `details.field` names it."""

    status, code = 400, "SDK_VALIDATION_INVALID_ARGUMENT"
    advice = "Correct what `details.field` names and send it again."


class MaxPollEventsExceeded(SdkError):
    """`max` of a poll is above the effective limit."""

    status, code = 400, "SDK_VALIDATION_MAX_POLL_EVENTS_EXCEEDED"
    advice = "Ask for at most `details.max_poll_events`, or negotiate a larger limit."


class MaxExtensionKeysExceeded(SdkError):
    """An event's or a marker's `extensions` has more keys than the effective limit."""

    status, code = 400, "SDK_VALIDATION_MAX_EXTENSION_KEYS_EXCEEDED"
    advice = "Send fewer extension keys, or negotiate a larger limit."


class EventTooLarge(SdkError):
    """The compact UTF-8 JSON of an event's payload is larger than the effective limit; it was not emitted."""

    status, code = 413, "SDK_VALIDATION_EVENT_TOO_LARGE"
    advice = "Shorten the payload to `details.max_event_bytes`, or negotiate a larger limit."


class BatchTooLarge(SdkError):
    """One event alone does not fit into a poll's batch, or a request body is larger than the hub takes."""

    status, code = 413, "SDK_VALIDATION_BATCH_TOO_LARGE"
    advice = "Of a poll: negotiate a larger `max_batch_bytes`, then poll on with the same cursor. Of a body: split it."


class InvalidState(SdkError):
    """The client has not negotiated with the runtime yet, or a delivery transition goes backward."""

    status, code = 409, "SDK_RUNTIME_INVALID_STATE"
    advice = "Negotiate first; of a transition, do not send it again."


class AlreadyTerminal(SdkError):
    """The message has reached its terminal state; no transition can follow."""

    status, code = 409, "SDK_RUNTIME_ALREADY_TERMINAL"
    advice = "Send no more transitions of this message. If `details.capability` is there, negotiate it before `sent`."


class Conflict(SdkError):
    """`details.domain` is `event`: the id belongs to other content; `marker`: the marker has another revision."""

    status, code = 409, "SDK_RUNTIME_CONFLICT"
    advice = "Of an event: use a new event_id. Of a marker: refresh from the marker list, then decide again."


class StreamDegraded(SdkError):
    """The subscription lost history and was told so; none of its cursors is served any more."""

    status, code = 409, "SDK_RUNTIME_STREAM_DEGRADED"
    advice = "Poll without a cursor: the first batch begins with a StreamGap that says what is gone."


class InvalidCursor(SdkError):
    """The cursor is empty, broken, altered, signed with a key that is gone, or of another runtime or stream."""

    status, code = 400, "SDK_RUNTIME_INVALID_CURSOR"
    advice = "Use a cursor exactly as this stream's poll returned it, or poll without one to start over."


class CursorExpired(SdkError):
    """Events after the cursor were pruned; its subscription is degraded from now on."""

    status, code = 410, "SDK_RUNTIME_CURSOR_EXPIRED"
    advice = "Poll without a cursor: the first batch begins with a StreamGap that says what is gone."


class Absent(SdkError):
    """No such marker, grant or route."""

    status, code = 404, "SDK_RUNTIME_NOT_FOUND"
    advice = "Check the id; list what there is."


class ContractIncompatible(SdkError):
    """None of the contract versions the runtime supports is spoken here."""

    status, code = 409, "SDK_CAPABILITY_CONTRACT_INCOMPATIBLE"
    advice = "Use an SDK that speaks one of `details.supported_contract_versions`."


class AuthRequired(SdkError):
    """No token, or one that cannot be trusted."""

    status, code = 401, "SDK_SECURITY_AUTH_REQUIRED"
    advice = "Send a valid token."


class AuthzDenied(SdkError):
    """The token is good but lacks the role, or does not reach the runtime."""

    status, code = 403, "SDK_SECURITY_AUTHZ_DENIED"
    advice = "Ask for a token with the role or the runtime that `details` names."


class GrantEnded(SdkError):
    """The break-glass grant has expired or was revoked; its raw values are not readable any more."""

    status, code = 403, "SDK_SECURITY_GRANT_ENDED"
    advice = "If you still need to look, make a new grant; it covers what is emitted from then on."


class RateLimited(SdkError):
    """The tenant sends more requests than it may, or storage asked to slow down."""

    status, code, retry_after_ms = 429, "SDK_SECURITY_RATE_LIMITED", 1000
    retryable, is_user_actionable = True, False
    advice = "Send the same request again after `Retry-After` seconds."


class StorageUnavailable(SdkError):
    """Storage did not answer, or other writers kept winning. Whether it happened is unknown."""

    status, code, retry_after_ms = 503, "SDK_INTERNAL_UNAVAILABLE", 1000
    retryable, is_user_actionable = True, False
    advice = "Send the same request again under the same ids after `Retry-After` seconds: that is safe."


class InternalError(SdkError):
    """Something went wrong on our side."""

    status, code = 500, "SDK_INTERNAL_ERROR"
    retryable, is_user_actionable = True, False
    advice = "The same request again under the same ids is safe; if it stays, tell the operator the request id."


_FOREIGN: Mapping[type[MillraceError], type[SdkError]] = {
    errors.AuthFailed: AuthRequired,
    errors.Forbidden: AuthzDenied,
    errors.NotFound: Absent,
    errors.TooLarge: BatchTooLarge,
    errors.BadRequest: InvalidArgument,
    errors.Throttled: RateLimited,
    errors.Unavailable: StorageUnavailable,
}


def as_sdk_error(error: MillraceError) -> SdkError:
    """The core's own errors, as this contract words them."""
    if isinstance(error, SdkError):
        return error
    kind = next((ours for theirs, ours in _FOREIGN.items() if isinstance(error, theirs)), InternalError)
    worded = kind(error.message, **error.details)
    if error.retry_after_ms is not None:
        worded.retry_after_ms = error.retry_after_ms
    return worded


def catalogue() -> list[type[SdkError]]:
    return sorted(SdkError.__subclasses__(), key=lambda kind: kind.code)
