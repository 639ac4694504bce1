"""Fixtures and settings that several kinds of tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest

from local.emulator import emulator, free_port

pytest_plugins = [
    "tests.support.aws_models",
    "tests.support.browser",
    "tests.support.leaks",
    "tests.support.quick",
    "tests.support.run_again",
    "tests.support.scheduling",
]

# How long an example takes says more about the machine's other work than about the code.
hypothesis.settings.register_profile("millrace", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("millrace")


@pytest.fixture(scope="session", autouse=True)
def nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No server, token or journal of the person at the machine gets in."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SPEC_KITTY_SAAS_URL", "MILLRACE_URL", "MILLRACE_WS_URL", "MILLRACE_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("MILLRACE_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An emulator of these tests' own; or, with MILLRACE_TEST_ENDPOINT, whatever listens there."""
    given = os.environ.get("MILLRACE_TEST_ENDPOINT")
    if given:
        yield given
        return
    with emulator(tmp_path_factory.mktemp("emulator"), free_port()) as emulated:
        yield emulated.endpoint_url
