"""The counted figures of the hub's delivery, on the embedded stack."""

from __future__ import annotations

import pytest

from tests.bench.delivery_hub import delivered, retried, selecting
from tests.bench.rig import Rig, rig_at


@pytest.fixture
def rig(endpoint: str) -> Rig:
    return rig_at(endpoint)


@pytest.mark.parametrize(("events", "at_once", "units"), [(1000, 1000, 2), (1000, 100, 20), (20, 1, 40)])
def test_a_request_is_written_down_for_two_units_however_many_events_it_held(
    rig: Rig, events: int, at_once: int, units: int
) -> None:
    """D9"""
    assert delivered(rig, events, at_once).write_units("delivery") == units


def test_a_batch_that_failed_as_a_whole_costs_as_little_as_one_that_did_not(rig: Rig) -> None:
    first, second = retried(rig, 1000, "held")
    assert first.write_units("delivery") <= 6
    assert second.write_units("delivery") <= 8


def test_selection_costs_the_same_whatever_is_stored(rig: Rig) -> None:
    """D9"""
    small, large = selecting(rig, 200), selecting(rig, 5000)
    assert large.calls == small.calls
    assert large.read_units("delivery") == small.read_units("delivery")
