"""A busy ledger in the simulator: without one of the rules of waiting in line and leading, a promise is broken."""

from __future__ import annotations

import pytest

from tests.simulation.planted import Bug
from tests.simulation.planted_line import LINE_BUGS
from tests.simulation.test_simulation import PLANTED_SEEDS, search


@pytest.mark.parametrize("bug", LINE_BUGS, ids=lambda bug: bug.rule)
def test_a_planted_bug_in_the_line_is_caught(bug: Bug) -> None:
    ended = search(bug, PLANTED_SEEDS)
    assert ended.returncode == 1, f"nobody noticed that this no longer holds: {bug.rule}"
    assert "A promise is broken: seed" in ended.stderr, ended.stderr
