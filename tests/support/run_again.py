"""A pytest plugin: after the first failure, the last line says how to run just that test."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

first_failure = pytest.StashKey[str]()


class RunAgain:
    """Remembers the first failure, in whichever process it was."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._remember(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._remember(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Outside pytest's own, which ends with the summary."""
        result = yield
        failed = self.config.stash.get(first_failure, None)
        reporter: pytest.TerminalReporter | None = self.config.pluginmanager.get_plugin("terminalreporter")
        if failed is not None and reporter is not None:
            reporter.write_line(f"Run just this one: {command(failed)}", bold=True)
        return result

    def _remember(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and first_failure not in self.config.stash:
            file, separator, test = report.nodeid.partition("::")
            path = os.path.relpath(self.config.rootpath / file, self.config.invocation_params.dir)
            self.config.stash[first_failure] = path + separator + test


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunAgain(config))


def command(nodeid: str) -> str:
    """To be pasted where the tests were started."""
    pytest_here = os.path.relpath(Path(sys.prefix, "bin", "pytest"))
    return shlex.join([*_sizes_and_seeds(), pytest_here, nodeid])


def _sizes_and_seeds() -> list[str]:
    """The settings that tests are made from: without them, there may be no test of that name."""
    return [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith("MILLRACE_") and re.fullmatch(r"[0-9,]+", value)
    ]
