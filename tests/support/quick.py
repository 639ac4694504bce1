"""A pytest plugin: `--quick` leaves out what needs an AWS or is marked `slow`, and tries fewer examples."""

from __future__ import annotations

import hypothesis
import pytest

BACKENDS = {"moto", "embedded", "lean"}
"""Parameters of the contract tests; what needs no AWS is in memory, or in a directory."""
FIXTURES = {"aws", "endpoint", "stack"}
EXAMPLES = 20
"""Of each property that does not ask for a number of its own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what takes long")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: left out of `make check`")
    if config.getoption("quick"):
        hypothesis.settings.register_profile("quick", hypothesis.settings(), max_examples=EXAMPLES)
        hypothesis.settings.load_profile("quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("quick"):
        left_out = [item for item in items if _is_slow(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _is_slow(item)]


def _is_slow(item: pytest.Item) -> bool:
    if item.get_closest_marker("slow") is not None:
        return True
    if not isinstance(item, pytest.Function):
        return False
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return bool(FIXTURES & set(item.fixturenames)) or any(
        isinstance(parameter, str) and parameter in BACKENDS for parameter in parameters
    )
