"""A small run of `make chaos` on the tests' own hub."""

from __future__ import annotations

from tests.chaos.plan import SMALL
from tests.chaos.run import run
from tests.e2e.conftest import Hub


def test_a_storm_breaks_no_promise(stack: Hub) -> None:
    outcome = run(stack, SMALL)
    assert {name: problems for name, problems in outcome.broken.items() if problems} == {}
