"""What can go wrong for a caller of streams and markers: one class for the errors of T12, few below it.

Refused
└── SdkError              the hub's error object, field by field
    ├── Conflict          another write came first, or the id has other content
    ├── CursorExpired     the cursor lies below what is still kept
    ├── StreamDegraded    so did an earlier cursor of its subscription
    └── StreamGapped      `Stream.events` came to one of these two and was told to stop there
Unreachable
└── NoAnswer              no answer, or none that can be read
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from millrace_client.errors import Refused, Unreachable
from millrace_client.sync.protocol import Json


@dataclass(frozen=True, slots=True)
class Emitted:
    """The event is in the stream. `deduped`: it was there already, and this is its first place."""

    event_id: str
    seq_no: int
    deduped: bool


class SdkError(Refused):
    """
    The hub said no. `status` is that of the answer, or what it would be for an error inside a list of results.

    `attempts` counts the requests it took: above 1, an earlier one may have been carried out although its answer was
    lost. `retry_after` is in seconds, 0 if the hub named none. `progress` is set when `emit` is what failed.
    """

    repeatable: ClassVar[bool] = True

    def __init__(
        self,
        machine_code: str,
        category: str,
        retryable: bool,
        is_user_actionable: bool,
        message: str,
        details: Mapping[str, Any],
        status: int,
    ) -> None:
        super().__init__(status, machine_code, message, details)
        self.machine_code = machine_code
        self.category = category
        self.retryable = retryable
        self.is_user_actionable = is_user_actionable
        self.retry_after = 0.0
        self.attempts = 1
        self.progress: Progress | None = None

    @property
    def may_repeat(self) -> bool:
        """Whether the very same request may succeed later, without anything else done first."""
        return self.retryable and self.repeatable

    def as_json(self) -> Json:
        return {
            "machine_code": self.machine_code,
            "category": self.category,
            "retryable": self.retryable,
            "is_user_actionable": self.is_user_actionable,
            "message": self.message,
            "details": self.details,
            "status": self.status,
        }


class Conflict(SdkError):
    """`details` names the domain: `marker` (a stale revision, or a taken id) or `event` (the id has other content)."""

    repeatable = False


class CursorExpired(SdkError):
    """The cursor lies below the floor; the way back is a poll without cursor."""

    repeatable = False


class StreamDegraded(SdkError):
    """A cursor of this subscription had expired before; the way back is a poll without cursor."""

    repeatable = False


class StreamGapped(SdkError):
    """
    Events after `cursor` are no longer kept. Nothing was reset or skipped: the way on is the caller's choice.

    `position` is the `seq_no` up to which events were given, None if none were.
    """

    repeatable = False

    def __init__(self, error: SdkError, cursor: str | None, position: int | None) -> None:
        super().__init__(
            error.machine_code,
            error.category,
            error.retryable,
            error.is_user_actionable,
            f"{error.message} The last event given was {position or 'none'}; on_gap='yield' goes on after the gap.",
            error.details,
            error.status,
        )
        self.attempts = error.attempts
        self.cursor = cursor
        self.position = position


class NoAnswer(Unreachable):
    """What was asked for may have been done or not. `progress` is set when `emit` is what failed."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The event is not in the stream. If `error.retryable`, the client has tried as often as it may."""

    event_id: str
    error: SdkError


Result = Emitted | Rejected


@dataclass(frozen=True, slots=True)
class Progress:
    """
    How far `emit` came before a request failed as a whole.

    `results` are those of the first events; `unsettled` are the others as they were sent, ids and times included.
    Some may be in the stream. Emit `unsettled` again: what is there is deduped.
    """

    results: tuple[Result, ...]
    unsettled: tuple[Json, ...]
