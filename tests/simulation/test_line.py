"""A busy ledger in the simulator: without one of the rules of waiting in line and leading, a promise is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.planted import Bug
from tests.simulation.planted_line import LINE_BUGS
from tests.simulation.test_simulation import PLANTED_SEEDS, RARE, plant, search


@pytest.mark.parametrize("bug", LINE_BUGS, ids=lambda bug: bug.rule)
def test_a_planted_bug_in_the_line_is_caught(bug: Bug, tmp_path: Path) -> None:
    run = search(plant(bug, tmp_path), PLANTED_SEEDS, first=RARE.get(bug.rule, 0))
    assert run.returncode == 1, f"nobody noticed that this no longer holds: {bug.rule}"
    assert "A promise is broken: seed" in run.stderr, run.stderr
