"""Fixtures that several kinds of tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from local.emulator import emulator, free_port


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An emulator of these tests' own; or, with MILLRACE_TEST_ENDPOINT, whatever listens there."""
    given = os.environ.get("MILLRACE_TEST_ENDPOINT")
    if given:
        yield given
        return
    with emulator(tmp_path_factory.mktemp("emulator"), free_port()) as url:
        yield url
