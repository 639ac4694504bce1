"""When a delivery is tried again: exponential, with jitter, up to a ceiling, and never before the target asked (D4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

SECOND = 1_000
HOUR = 3_600 * SECOND
LONGEST_ASKED_MS = 24 * HOUR
"""A target may ask for patience, but not for ever."""


@dataclass(frozen=True, slots=True)
class Pace:
    """`most` attempts; after the last one the delivery is terminal."""

    first_ms: int
    longest_ms: int
    most: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A target that is down for a week loses nothing: 200 attempts at an hour's distance."""

    transient: Pace = field(default=Pace(5 * SECOND, HOUR, 200))
    pending: Pace = field(default=Pace(30 * SECOND, HOUR, 200))
    rejected: Pace = field(default=Pace(60 * SECOND, 6 * HOUR, 12))

    def pace(self, status: str) -> Pace:
        return {"transient": self.transient, "pending": self.pending, "rejected": self.rejected}[status]

    def wait_ms(self, status: str, attempts: int, jitter: float) -> int:
        """After so many attempts; `jitter` in [0, 1) spreads it over the upper half of the interval."""
        pace = self.pace(status)
        return spread(min(pace.longest_ms, pace.first_ms * 2 ** min(attempts - 1, 40)), jitter)


def spread(interval_ms: int, jitter: float) -> int:
    return int(interval_ms * (0.5 + jitter / 2))


def retry_after_ms(header: str | None, now_ms: int) -> int | None:
    """Both forms of the header, seconds and a date; None if it is absent or says nothing we can read."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return LONGEST_ASKED_MS if len(text) > 9 else min(int(text) * SECOND, LONGEST_ASKED_MS)
    try:
        asked_ms = int(parsedate_to_datetime(text).timestamp() * SECOND)
    except (ValueError, OverflowError, OSError):
        return None
    return min(max(asked_ms - now_ms, 0), LONGEST_ASKED_MS)
