"""Fan-out in shards: the hub's own code under a seeded scheduler, while crowds come and go and workers die."""

from __future__ import annotations

import pytest

from tests.simulation.planted import Bug
from tests.simulation.planted_crowd import CROWD_BUGS
from tests.simulation.test_simulation import search, soak

SEEDS = 1_000
PLANTED_SEEDS = 8_000


def test_every_live_client_of_a_crowd_gets_everything_in_order_or_is_closed() -> None:
    """S9, S11, T7: in as many shards as there are, whoever dies."""
    ended = soak("--seeds", str(SEEDS), scenario="crowd")
    assert ended.returncode == 0, ended.stderr


def test_the_same_seed_gives_the_same_crowd() -> None:
    runs = [soak("--seeds", "30", scenario="crowd").stdout.rsplit(",", 1)[0] for _ in range(2)]
    assert runs[0] == runs[1]
    assert "30 seeds held" in runs[0]


@pytest.mark.parametrize("bug", CROWD_BUGS, ids=lambda bug: bug.rule)
def test_a_planted_bug_of_fan_out_in_shards_is_caught(bug: Bug) -> None:
    ended = search(bug, PLANTED_SEEDS, scenario="crowd")
    assert ended.returncode == 1, f"nobody noticed that this no longer holds: {bug.rule}"
    assert "A promise is broken: seed" in ended.stderr, ended.stderr
    assert "--scenario crowd'" in ended.stderr
