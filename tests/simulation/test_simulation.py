"""DESIGN of the proof: docs/guarantees.md. The core's own code runs on faulty tables under a seeded scheduler."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.simulation.planted import BUGS, Bug
from tests.simulation.planted_line import LINE_BUGS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers/common/python/millrace"
SEEDS = 10_000
PLANTED_SEEDS = 40_000
RARE = {
    "a chain has no hole": 1_370,
    "a conflict within a page stops whom it is to stop": 260,
    "a mark is no further than its writer has looked": 420,
    "a reader stops at a hole": 220,
    "a receipt's positions begin where the part begins": 1_610,
    "a subscription is forgotten only after its connection is closed": 320,
    "a sync's subscription is durable before the head is read": 370,
    "a writer learns from receipts of its own request only": 290,
    "ids claimed a moment ago count for where the search starts": 2_920,
    "pages never cross the end of a bucket": 1_250,
    "pruning overwrites only the revision it read": 400,
}
"""Bugs that few histories show: the search for them begins shortly before one that does, and goes on as far."""


@cache
def compiled() -> TemporaryDirectory[str]:
    """Where the processes of these tests leave what they compile for each other; gone when the tests are over."""
    return TemporaryDirectory()


def run(module: str, *arguments: str, bug: Bug | None = None) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the simulator shrinks buckets, and planted bugs need other code."""
    planted = ("tests.simulation.plant", bug.file, bug.line, bug.instead) if bug else ()
    path = os.pathsep.join((str(PACKAGE.parent), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": compiled().name}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", *planted, module, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def soak(*arguments: str, scenario: str = "ledger", bug: Bug | None = None) -> subprocess.CompletedProcess[str]:
    return run("tests.simulation.soak", "--scenario", scenario, *arguments, bug=bug)


def search(bug: Bug, seeds: int, scenario: str = "ledger") -> subprocess.CompletedProcess[str]:
    """For one seed that fails: most are among the first, where a second process would only be in the way."""
    assert_is_there(bug)
    first = RARE.get(bug.rule, 0)
    return soak("--seeds", str(seeds), "--first", str(first), "--jobs", "1", scenario=scenario, bug=bug)


def assert_is_there(bug: Bug) -> None:
    count = (PACKAGE / bug.file).read_text().count(bug.line)
    assert count == 1, f"the line to break is gone from {bug.file}: {bug.line!r}"


def test_every_promise_holds_on_every_seed() -> None:
    """S2, S4, S5, S6, S10, S13: exactly once, dense, ordered, readable, whatever fails."""
    ended = soak("--seeds", str(SEEDS))
    assert ended.returncode == 0, ended.stderr


def test_the_same_seed_gives_the_same_history() -> None:
    runs = [soak("--seeds", "50", "--jobs", "1").stdout.rsplit(",", 1)[0] for _ in range(2)]
    assert runs[0] == runs[1]
    assert "50 seeds held" in runs[0]


def test_rare_bugs_are_bugs() -> None:
    assert RARE.keys() <= {bug.rule for bug in (*BUGS, *LINE_BUGS)}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.rule)
def test_a_planted_bug_is_caught(bug: Bug) -> None:
    ended = search(bug, PLANTED_SEEDS)
    assert ended.returncode == 1, f"nobody noticed that this no longer holds: {bug.rule}"
    assert "A promise is broken: seed" in ended.stderr, ended.stderr
    assert "replay it: make soak SEEDS=1 ARGS='--first" in ended.stderr


def test_a_failing_seed_can_be_replayed_alone() -> None:
    seed = soak("--seeds", "500", bug=BUGS[0]).stderr.split("--first ")[1].split()[0]
    assert f"seed {seed}:" in soak("--seeds", "1", "--first", seed, bug=BUGS[0]).stderr
