"""A pytest plugin: who runs what when tests run side by side (`--dist loadfile`)."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

TOGETHER = ("tests/e2e/", "tests/jobs/")
"""Tests that share one hub, or one Spark: one process has them all, in their order."""
APART = ("tests/e2e/test_sam.py",)
"""Tests beside those that share nothing with them."""
ONE_BY_ONE = ("tests/simulation/",)
"""Tests that start processes of their own and share nothing: any process takes the next one."""
LONGEST_FIRST = ("tests/e2e/", "tests/jobs/", "tests/simulation/", "tests/contract/", "tests/bench/")
"""What takes long begins early, and the many small files fill the gaps at the end."""


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    """As `--dist loadfile`, but what belongs together stays so, and the order is that of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(ONE_BY_ONE):
            return nodeid
        file: str = super()._split_scope(nodeid)
        if file in APART:
            return file
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile | None:
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> int:
    folders = (place for place, folder in enumerate(LONGEST_FIRST) if nodeid.startswith(folder))
    return next(folders, len(LONGEST_FIRST))
