"""The archive's own code under the seeded scheduler; and without one of its rules, which must be noticed."""

from __future__ import annotations

import subprocess

import pytest

from tests.simulation.planted import Bug
from tests.simulation.test_simulation import assert_is_there, run

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


def soak(*arguments: str, bug: Bug | None = None) -> subprocess.CompletedProcess[str]:
    return run("tests.simulation.archiving", *arguments, bug=bug)


def test_every_position_is_archived_once_on_every_seed() -> None:
    """C3, C8: whatever fails or dies, and while retention prunes."""
    ended = soak("--seeds", str(SEEDS))
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.rule)
def test_a_planted_bug_of_the_archive_is_caught(bug: Bug) -> None:
    assert_is_there(bug)
    ended = soak("--seeds", str(PLANTED_SEEDS), bug=bug)
    assert ended.returncode == 1, f"nobody noticed that this no longer holds: {bug.rule}"
    assert "A promise is broken: seed" in ended.stderr
