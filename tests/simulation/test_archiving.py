"""The archive's own code under the seeded scheduler; and without one of its rules, which must be noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.planted import Bug
from tests.simulation.test_simulation import PACKAGE, ROOT, plant

SEEDS = 1_000
PLANTED_SEEDS = 6_000
CODE = "lake/application/archive_events.py"
BUGS = (
    Bug(
        "what is reserved is decided by one conditional write",
        CODE,
        "if not self.lanes.store(number, reserved):",
        "if self.lanes.store(number, reserved) is None:",
    ),
    Bug(
        "a reservation is finished before another is made",
        CODE,
        "if lane.reservation is not None:",
        "if lane.version < 0 and lane.reservation is not None:",
    ),
    Bug(
        "an object whose cursors have moved is there, and is not made again",
        CODE,
        "elif reservation.events and not self._is_there(spans) and not self._put_again(number, lane, reservation):",
        "elif reservation.events and not self._put_again(number, lane, reservation):",
    ),
    Bug(
        "the cursors move only after the object is put",
        CODE,
        "            self.objects.put(reservation.name, made.data)\n",
        "            [self._move(ledger, first, last) for ledger, (first, last) in spans.items()]\n"
        "            self.objects.put(reservation.name, made.data)\n",
    ),
    Bug(
        "a lane is looked at before the cursors of its ledgers",
        CODE,
        "            reserved = Lane(lane.version + 1, reservation)\n",
        "            reserved = Lane(self.lanes.load(number).version + 1, reservation)\n",
    ),
)


def soak(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation.archiving", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(path), str(ROOT)))}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_every_position_is_archived_once_on_every_seed() -> None:
    """C3, C8: whatever fails or dies, and while retention prunes."""
    run = soak(PACKAGE.parent, "--seeds", str(SEEDS))
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.rule)
def test_a_planted_bug_of_the_archive_is_caught(bug: Bug, tmp_path: Path) -> None:
    run = soak(plant(bug, tmp_path), "--seeds", str(PLANTED_SEEDS))
    assert run.returncode == 1, f"nobody noticed that this no longer holds: {bug.rule}"
    assert "A promise is broken: seed" in run.stderr
