"""A pytest plugin: the browser tests run where Chromium and axe-core are; where they are not, the last lines say so.

With MILLRACE_BROWSER=required their absence is an error.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AXE = ROOT / "build/browser/node_modules/axe-core/axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome")
HOW = "make browser"


def chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def missing() -> list[str]:
    """What the browser tests need and this machine has not."""
    needed = {"Chromium": chromium() is not None, "axe-core": AXE.is_file()}
    return [name for name, is_here in needed.items() if not is_here]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not missing():
        return
    left_out = [item for item in items if "browser" in getattr(item, "fixturenames", ())]
    if left_out and os.environ.get("MILLRACE_BROWSER") == "required":
        raise pytest.UsageError(f"the browser tests need {' and '.join(missing())}; to get it: {HOW}")
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


class NotRun:
    """Says at the very end what nobody would notice otherwise."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        result = yield
        reporter: pytest.TerminalReporter | None = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(
                f"THE BROWSER TESTS DID NOT RUN: this machine has no {' and no '.join(missing())}.", red=True
            )
            reporter.write_line(
                f"To get what they need, and to run them: {HOW} && .venv/bin/pytest tests/browser", red=True
            )
        return result


def wanted(config: pytest.Config) -> bool:
    """Whether what was asked for includes them."""
    folder = ROOT / "tests/browser"
    asked = [(config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args]
    return not config.getoption("quick") and any(
        folder.is_relative_to(path) or path.is_relative_to(folder) for path in asked
    )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and missing() and wanted(config):
        config.pluginmanager.register(NotRun(config))
