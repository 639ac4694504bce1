"""Fixtures that several kinds of tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from local.emulator import emulator, free_port

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

TOGETHER = ("tests/e2e/", "tests/jobs/")
"""Tests that share one hub, or one Spark: run side by side, one process has them all, in their order."""


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    """As `--dist loadfile`, but what belongs together stays so."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile | None:
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An emulator of these tests' own; or, with MILLRACE_TEST_ENDPOINT, whatever listens there."""
    given = os.environ.get("MILLRACE_TEST_ENDPOINT")
    if given:
        yield given
        return
    with emulator(tmp_path_factory.mktemp("emulator"), free_port()) as url:
        yield url
