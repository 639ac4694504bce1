"""A rate: how many requests one tenant may send, over time and at once.

What a tenant has used is a moment, in microseconds: each request moves it on by its part of a second, from its own
time if that is later. As long as the moment is not more than the burst ahead of now, the tenant may go on. A function
instance counts by itself and tells after a step of requests, dated to the first of them. So only what was used is
counted, when it was used, and a tenant below its rate is not refused, however many instances serve it.
"""

from __future__ import annotations

from dataclasses import dataclass

SECOND_US = 1_000_000
TOLD_A_SECOND, LONGEST_STEP = 50, 10
MOST_DEBT_US = 30 * SECOND_US
"""How far ahead of the burst a tenant may be put: the longest that it is refused for."""
FORGOTTEN_US = 20 * SECOND_US
"""Requests that an instance has not told of by then are too few to matter."""


@dataclass(frozen=True, slots=True)
class Rate:
    per_second: int
    burst: int

    @property
    def step(self) -> int:
        """How many requests of a tenant an instance serves before it tells; a low rate is counted one by one."""
        return max(1, min(LONGEST_STEP, self.per_second // TOLD_A_SECOND))

    def cost_us(self, requests: int) -> int:
        return requests * SECOND_US // self.per_second

    @property
    def burst_us(self) -> int:
        """Not less than one instance tells at once."""
        return self.cost_us(max(self.burst, self.step))

    def latest_us(self, now_us: int) -> int:
        return now_us + self.burst_us + MOST_DEBT_US
