"""Nobody waits long for another tenant: the bounds of docs/guarantees.md#fair-shares, in virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bench.flood_time import HANGING, LIMIT, RATES, measured, of_template

NAMES = ("broadcast", "delivery")
PROBES = 25


@pytest.mark.parametrize("rate", [min(RATES), max(RATES)])
def test_a_tenant_that_floods_and_whose_targets_hang_delays_another_by_three_times_at_most(rate: float) -> None:
    """S9, D6, the bound: up to the most requests that a tenant may have."""
    found = measured(rate, probes=PROBES)
    assert {name: found.ratio(name) for name in NAMES if found.ratio(name) > LIMIT} == {}


def test_slow_targets_of_one_tenant_do_not_delay_a_delivery_of_another() -> None:
    """D6, the bound: however many there are. Without a flood the rest of the hub is idle."""
    few, many = measured(2, hanging=1), measured(2, hanging=5 * HANGING)
    assert many.flooded["delivery"] <= 1.5 * few.flooded["delivery"]


def test_the_bound_needs_the_lanes_of_the_log() -> None:
    found = measured(max(RATES), replace(of_template(), lanes=1), PROBES)
    assert found.ratio("broadcast") > LIMIT
