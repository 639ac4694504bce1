from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from millrace_client.journal.sqlite.targets import SqliteTargets
from tests.support.worlds import World, in_memory, on_sqlite

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """In memory where the system has such a place: these tests commit to the disk all the time."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """Every adapter of the journal."""
    if request.param == "memory":
        yield in_memory()
        return
    made = on_sqlite(tmp_path / "journal.db")
    yield made
    assert isinstance(made.states, SqliteTargets)
    made.states.database.connection.close()
