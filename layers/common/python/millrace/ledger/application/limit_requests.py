"""Limit requests: refuse a tenant that sends more than its rate, at the cost of one write for many requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from millrace.ledger.domain.errors import Throttled, Unavailable
from millrace.ledger.domain.rates import FORGOTTEN_US, Rate
from millrace.ledger.ports import Meter

MOST_TENANTS = 10_000
"""That an instance remembers; then it begins anew."""


class TooManyRequests(Throttled):
    """The tenant is over its rate; nothing of the request was read."""

    def __init__(self, retry_after_ms: int, rate: Rate) -> None:
        text = "The tenant sends more requests than it may; nothing of this one was read."
        super().__init__(text, requests_per_second=rate.per_second)
        self.retry_after_ms = retry_after_ms


@dataclass(slots=True)
class _Count:
    since_us: int
    untold: int = 0
    free_us: int = 0
    """When the tenant may send again."""


@dataclass(slots=True)
class LimitRequests:
    """Of one function instance. All instances share the meter."""

    meter: Meter
    rate: Rate
    clock_us: Callable[[], int]
    _counts: dict[str, _Count] = field(default_factory=dict)

    def __call__(self, tenant: str) -> None:
        """Count one request. Raises `TooManyRequests`."""
        now_us = self.clock_us()
        count = self._count(tenant, now_us)
        if now_us < count.free_us:
            raise TooManyRequests(-(-(count.free_us - now_us) // 1000), self.rate)
        if not count.untold:
            count.since_us = now_us
        count.untold += 1
        if count.untold >= self.rate.step:
            self._tell(tenant, count, now_us)

    def _count(self, tenant: str, now_us: int) -> _Count:
        count = self._counts.get(tenant)
        if count is None or (now_us - count.since_us > FORGOTTEN_US and now_us >= count.free_us):
            if len(self._counts) >= MOST_TENANTS:
                self._counts.clear()
            count = self._counts[tenant] = _Count(now_us)
        return count

    def _tell(self, tenant: str, count: _Count, now_us: int) -> None:
        """A meter that does not answer limits nobody."""
        used_us, since_us = self.rate.cost_us(count.untold), count.since_us
        count.untold = 0
        try:
            used_to_us = self.meter.add(tenant, used_us, since_us, self.rate.latest_us(now_us))
        except Unavailable:
            used_to_us = 0
        count.free_us = used_to_us - self.rate.burst_us
