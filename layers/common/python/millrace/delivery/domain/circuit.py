"""A circuit per target: after failures in a row it is left alone for a while, so that a dead one costs little."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.delivery.domain.retry import SECOND, spread

THRESHOLD = 3
FIRST_MS = 30 * SECOND
LONGEST_MS = 600 * SECOND


@dataclass(frozen=True, slots=True)
class Circuit:
    """Requests failed as a whole, in a row; no request before `open_until_ms`."""

    failures: int = 0
    open_until_ms: int = 0

    def allows(self, now_ms: int) -> bool:
        return now_ms >= self.open_until_ms

    def failed(self, now_ms: int, asked_ms: int | None, jitter: float) -> Circuit:
        """One more failure; `asked_ms` is what the target itself asked for (Retry-After)."""
        failures = self.failures + 1
        beyond = failures - THRESHOLD
        own = spread(min(LONGEST_MS, FIRST_MS * 2 ** min(beyond, 40)), jitter) if beyond >= 0 else 0
        wait = max(own, asked_ms or 0)
        return Circuit(failures, now_ms + wait if wait else 0)

    def answered(self) -> Circuit:
        return Circuit()
