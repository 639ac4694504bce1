"""Requests of one tenant over many function instances, in virtual time: what is let in, refused, and written."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.ledger.adapters.memory import MemoryMeter
from millrace.ledger.application.limit_requests import MOST_TENANTS, LimitRequests, TooManyRequests
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.rates import FORGOTTEN_US, MOST_DEBT_US, SECOND_US, Rate

RATE = Rate(per_second=500, burst=1000)


@dataclass
class Fleet:
    """Instances of functions that share a meter. A request goes to any of them by chance; with seed 0 they take turns,
    and all tell at once."""

    instances: int
    rate: Rate = RATE
    seed: int = 0
    now_us: int = 10**15
    asked: int = 0
    meter: MemoryMeter = field(default_factory=MemoryMeter)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.limits = [LimitRequests(self.meter, self.rate, lambda: self.now_us) for _ in range(self.instances)]

    def ask(self, tenant: str = "t") -> int | None:
        """None if it was let in; else after how many ms to come again."""
        self.asked += 1
        limit = self.rng.choice(self.limits) if self.seed else self.limits[self.asked % self.instances]
        try:
            limit(tenant)
        except TooManyRequests as refused:
            return refused.retry_after_ms
        return None

    def send(self, per_second: int, seconds: int, tenant: str = "t") -> int:
        """How many of the requests, evenly spread, were let in."""
        let_in = 0
        for _ in range(per_second * seconds):
            self.now_us += SECOND_US // per_second
            let_in += self.ask(tenant) is None
        return let_in


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("instances", [1, 10, 200])
@pytest.mark.parametrize("rate", [RATE, Rate(20, 20), Rate(1, 1), Rate(1000, 2000)])
def test_a_tenant_that_stays_below_its_rate_is_never_refused(instances: int, rate: Rate, seed: int) -> None:
    """However many instances serve it, and with whatever of it is not told yet."""
    fleet = Fleet(instances, rate, seed)
    seconds = max(2, 3000 // rate.per_second)
    assert fleet.send(rate.per_second, seconds) == rate.per_second * seconds


@pytest.mark.parametrize("instances", [1, 10, 100])
def test_a_flood_gets_its_rate_and_its_burst_and_little_more(instances: int) -> None:
    fleet = Fleet(instances)
    let_in = fleet.send(5000, 20)
    least, most = RATE.per_second * 20, RATE.per_second * 20 + RATE.burst + instances * RATE.step
    assert least * 0.95 <= let_in <= most


def test_another_tenant_feels_nothing_of_a_flood() -> None:
    fleet = Fleet(20, seed=1)
    for number in range(20_000):
        fleet.now_us += SECOND_US // 5000
        fleet.ask("loud")
        if number % 20 == 0:
            assert fleet.ask("calm") is None
    assert fleet.ask("loud") is not None


def test_most_requests_cost_no_write_and_a_refused_one_never_does() -> None:
    """At its rate a tenant costs a write for ten requests; one that an instance seldom sees, none at all."""
    fleet = Fleet(10)
    fleet.send(500, 20)
    assert fleet.meter.writes <= 500 * 20 / RATE.step
    quiet = Fleet(1)
    for _ in range(50):
        quiet.now_us += 3 * SECOND_US
        assert quiet.ask() is None
    assert quiet.meter.writes == 0
    flooded = Fleet(1)
    while flooded.ask() is None:
        pass
    writes = flooded.meter.writes
    assert all(flooded.ask() is not None for _ in range(1000))
    assert flooded.meter.writes == writes


def test_who_comes_again_when_it_was_told_to_is_let_in() -> None:
    fleet = Fleet(1)
    fleet.send(20_000, 1)
    wait_ms = fleet.ask()
    assert wait_ms is not None
    fleet.now_us += wait_ms * 1000
    assert fleet.ask() is None


def test_nobody_is_refused_for_longer_than_the_debt_that_is_remembered() -> None:
    fleet = Fleet(200, Rate(1, 1))
    fleet.send(20_000, 1)
    wait = fleet.ask()
    assert wait is not None
    assert wait <= MOST_DEBT_US // 1000


@pytest.mark.parametrize("error", [Unavailable("no answer")])
def test_a_meter_that_does_not_answer_limits_nobody(error: Exception) -> None:
    class Broken(MemoryMeter):
        def add(self, *_: Any) -> int:
            raise error

    fleet = Fleet(1, meter=Broken())
    assert fleet.send(10_000, 1) == 10_000


def test_an_instance_remembers_no_more_tenants_than_it_has_room_for() -> None:
    fleet = Fleet(1)
    for number in range(MOST_TENANTS + 5):
        assert fleet.ask(f"t{number}") is None
    assert len(fleet.limits[0]._counts) <= MOST_TENANTS


def test_requests_that_were_not_told_of_for_long_are_forgotten_but_a_refusal_is_not() -> None:
    fleet = Fleet(1)
    fleet.send(RATE.step - 1, 1)
    fleet.now_us += FORGOTTEN_US + 1
    fleet.ask()
    assert fleet.meter.writes == 0


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 2000),
    st.integers(1, 2000),
    st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(1, 60)), min_size=1, max_size=40),
    st.integers(0, 2**32),
)
def test_whatever_comes_when_no_more_is_refused_than_the_rate_says(
    instances: int, per_second: int, burst: int, arrivals: list[tuple[int, int]], seed: int
) -> None:
    """Against one bucket that sees every request at once: nobody is refused whom it would let in with room to spare for
    what the instances have not told, and no more is let in than it would, but for a step of each instance."""
    fleet = Fleet(instances, Rate(per_second, burst), seed)
    used_us, let_in = 0, 0
    began_us = fleet.now_us
    for gap_us, requests in arrivals:
        fleet.now_us += gap_us
        for _ in range(requests):
            used_us = max(used_us, fleet.now_us)
            if fleet.ask() is None:
                used_us += fleet.rate.cost_us(1)
                let_in += 1
            else:
                untold_us = fleet.rate.cost_us((instances + 1) * fleet.rate.step)
                assert used_us > fleet.now_us + fleet.rate.burst_us - untold_us
    seconds = (fleet.now_us - began_us) / SECOND_US
    most = per_second * seconds + max(burst, fleet.rate.step) + 2 * instances * fleet.rate.step
    assert let_in <= most + per_second * (
        MOST_DEBT_US / SECOND_US if used_us > fleet.rate.latest_us(fleet.now_us) else 0
    )
