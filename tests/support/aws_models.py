"""A pytest plugin: a process reads each of AWS's descriptions of its services once.

Every test that mocks AWS starts with a session of its own, and botocore would parse the descriptions again for each.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from botocore.loaders import JSONFileLoader

read: Any = JSONFileLoader.load_file


@cache
def _description(path: str) -> Any:
    return read(JSONFileLoader(), path)


def pytest_configure() -> None:
    JSONFileLoader.load_file = lambda self, file_path: _description(file_path)  # type: ignore[method-assign]
