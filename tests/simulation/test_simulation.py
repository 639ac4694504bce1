"""DESIGN of the proof: docs/guarantees.md. The core's own code runs on faulty tables under a seeded scheduler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.planted import BUGS, Bug
from tests.simulation.planted_line import LINE_BUGS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers/common/python/millrace"
SEEDS = 10_000
PLANTED_SEEDS = 40_000
RARE = {
    "a chain has no hole": 800,
    "ids claimed a moment ago count for where the search starts": 2_700,
    "pages never cross the end of a bucket": 1_000,
    "pruning overwrites only the revision it read": 8_000,
}
"""Bugs that few histories show: the search for them begins shortly before one that does, and goes on as far."""


def soak(path: Path, *arguments: str, scenario: str = "ledger") -> subprocess.CompletedProcess[str]:
    """In a process of its own: the simulator shrinks buckets, and planted bugs need other code."""
    command = [sys.executable, "-m", "tests.simulation.soak", "--scenario", scenario, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(path), str(ROOT)))}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def search(path: Path, seeds: int, first: int = 0, scenario: str = "ledger") -> subprocess.CompletedProcess[str]:
    """For one seed that fails: most are among the first, where a second process would only be in the way."""
    return soak(path, "--seeds", str(seeds), "--first", str(first), "--jobs", "1", scenario=scenario)


def test_every_promise_holds_on_every_seed() -> None:
    """S2, S4, S5, S6, S10, S13: exactly once, dense, ordered, readable, whatever fails."""
    run = soak(PACKAGE.parent, "--seeds", str(SEEDS))
    assert run.returncode == 0, run.stderr


def test_the_same_seed_gives_the_same_history() -> None:
    runs = [soak(PACKAGE.parent, "--seeds", "50", "--jobs", "1").stdout.rsplit(",", 1)[0] for _ in range(2)]
    assert runs[0] == runs[1]
    assert "50 seeds held" in runs[0]


def plant(bug: Bug, folder: Path) -> Path:
    # With what is compiled: it stays valid for all files but the broken one, and saves compiling them each time.
    shutil.copytree(PACKAGE, folder / "millrace")
    file = folder / "millrace" / bug.file
    code = file.read_text()
    assert code.count(bug.line) == 1, f"the line to break is gone from {bug.file}: {bug.line!r}"
    file.write_text(code.replace(bug.line, bug.instead))
    return folder


def test_rare_bugs_are_bugs() -> None:
    assert RARE.keys() <= {bug.rule for bug in (*BUGS, *LINE_BUGS)}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.rule)
def test_a_planted_bug_is_caught(bug: Bug, tmp_path: Path) -> None:
    run = search(plant(bug, tmp_path), PLANTED_SEEDS, first=RARE.get(bug.rule, 0))
    assert run.returncode == 1, f"nobody noticed that this no longer holds: {bug.rule}"
    assert "A promise is broken: seed" in run.stderr, run.stderr
    assert "replay it: make soak SEEDS=1 ARGS='--first" in run.stderr


def test_a_failing_seed_can_be_replayed_alone(tmp_path: Path) -> None:
    folder = plant(BUGS[0], tmp_path)
    seed = soak(folder, "--seeds", "500").stderr.split("--first ")[1].split()[0]
    assert f"seed {seed}:" in soak(folder, "--seeds", "1", "--first", seed).stderr
