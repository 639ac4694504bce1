"""Sweeps over very many ledgers in virtual time; and without one of their rules, which must be noticed."""

from __future__ import annotations

import os

import pytest

from millrace.ledger.application.sweep import ASLEEP_A_SWEEP
from tests.simulation.planted import Bug
from tests.simulation.test_simulation import assert_is_there, run

LEDGERS = int(os.environ.get("MILLRACE_LEDGERS", "200000"))
"""A million in `make soak FULL=1`. What a sweep reads is the same for any number, which is what is shown."""
SWEEP, NOTE = "ledger/application/sweep.py", "ledger/application/note_growth.py"
BUGS = (
    Bug(
        "a consumer that moves its cursor notes that the ledger has grown",
        NOTE,
        "            self.rounds.note(ledger, window)\n",
        "",
    ),
    Bug(
        "a ledger is noted in every window in which it grows",
        NOTE,
        "if self._noted.get(ledger.name, 0) < window:",
        "if not self._noted.get(ledger.name, 0):",
    ),
    Bug(
        "the place among the sleeping is kept",
        SWEEP,
        "            self.rounds.keep_place(ASLEEP, place)\n",
        "            pass\n",
    ),
    Bug(
        "a window is left behind when it is over, and not before",
        SWEEP,
        "if window == oldest and is_over:",
        "if window == oldest:",
    ),
    Bug(
        "a window is over when nobody has a reason any more to be late in it",
        SWEEP,
        "is_over = end_of(window) + patience <= now_ms",
        "is_over = end_of(window) <= now_ms",
    ),
    Bug(
        "the place in a window is kept when time runs out",
        SWEEP,
        "(window, stretch.place) if stretch.place",
        '(window, "") if stretch.place',
    ),
    Bug(
        "a ledger that is behind is noted again",
        SWEEP,
        "                self._note_again(ledger, failures)\n",
        "                pass\n",
    ),
)


@pytest.mark.parametrize("seed", range(1, 6))
def test_no_ledger_starves(seed: int) -> None:
    """S10"""
    ended = run("tests.simulation.sweeping", "--seed", str(seed))
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_no_ledger_starves_among_very_many_and_those_that_sleep_cost_the_same() -> None:
    """A lap of many sweeps (of a million ledgers, three and a half days), in which 200 ledgers grow between two of them
    and doorbells are lost."""
    ended = run("tests.simulation.sweeping", "--ledgers", str(LEDGERS), "--grow", "200", "--visits", "6400")
    assert ended.returncode == 0, ended.stderr
    assert f"every ledger is looked at in {LEDGERS // ASLEEP_A_SWEEP + 1} sweeps" in ended.stdout
    assert "made good after 2 sweeps at most" in ended.stdout
    assert "2000 reads a sweep when all are asleep" in ended.stdout


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.rule)
def test_a_planted_bug_of_sweeps_is_caught(bug: Bug) -> None:
    assert_is_there(bug)
    ended = run("tests.simulation.sweeping", bug=bug)
    assert ended.returncode == 1, f"nobody noticed that this no longer holds: {bug.rule}"
    assert "A promise is broken: seed" in ended.stderr
