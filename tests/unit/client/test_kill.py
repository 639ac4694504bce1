"""kill -9 at any point: the journal opens, nothing captured is lost, no delivered row is forgotten."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["capture", "drain", "gc", "archive", "restore", "migrate", "take over"])
def test_a_client_that_is_killed_at_any_point_leaves_a_journal_that_goes_on(operation: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.unit.client.kill_points", operation, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 15
