"""Rows that announce their changes, in the simulator: delivery transitions and markers under faults and races."""

from __future__ import annotations

import pytest

from tests.simulation.planted import Bug
from tests.simulation.planted_announce import ANNOUNCE_BUGS
from tests.simulation.test_simulation import search, soak

SEEDS = 1_000
PLANTED_SEEDS = 10_000


def test_transitions_and_markers_are_told_in_order_and_once_on_every_seed() -> None:
    """T3, T4, M1, M2, M3, M4, M5: whatever fails, whoever dies, and however many write at once."""
    ended = soak("--seeds", str(SEEDS), scenario="announce")
    assert ended.returncode == 0, ended.stderr


def test_the_same_seed_gives_the_same_history_of_announcements() -> None:
    runs = [soak("--seeds", "30", scenario="announce").stdout.rsplit(",", 1)[0] for _ in range(2)]
    assert runs[0] == runs[1]
    assert "30 seeds held" in runs[0]


@pytest.mark.parametrize("bug", ANNOUNCE_BUGS, ids=lambda bug: bug.rule)
def test_a_planted_bug_in_announcing_is_caught(bug: Bug) -> None:
    ended = search(bug, PLANTED_SEEDS, scenario="announce")
    assert ended.returncode == 1, f"nobody noticed that this no longer holds: {bug.rule}"
    assert "A promise is broken: seed" in ended.stderr, ended.stderr
    assert "--scenario announce'" in ended.stderr
