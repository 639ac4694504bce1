"""A pytest plugin: who runs what when tests run side by side (`--dist loadfile`)."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

TOGETHER = ("tests/e2e/", "tests/jobs/")
"""Tests that share one hub, or one Spark: one process has them all, in their order."""
APART = (
    "tests/e2e/test_sam.py",
    "tests/e2e/test_first_deploy.py",
    "tests/e2e/test_run.py::test_a_running_stack_is_healthy_says_so_when_started_again_and_stops_without_leaving_a_process",
    "tests/e2e/test_run.py::test_what_is_kept_survives_a_stop_and_the_death_of_the_emulator_is_told_at_once",
    "tests/e2e/test_run.py::test_a_killed_run_takes_the_emulator_and_its_functions_with_it",
)
"""Files and tests beside those that share nothing with them: they need no hub, or start their own."""
WHILE_EMPTY = (
    "tests/e2e/test_retention.py",
    "tests/e2e/test_lake_jobs.py",
    "tests/e2e/test_lake_docs.py",
    "tests/e2e/test_archive.py",
)
"""Of those that share a hub, the ones that walk through all it holds: they go first, while it holds little."""
ONE_BY_ONE = ("tests/simulation/",)
"""Tests that start processes of their own and share nothing: any process takes the next one."""
LONGEST_FIRST = ("tests/e2e/", "tests/jobs/", "tests/simulation/", "tests/contract/", "tests/bench/")
"""What takes long begins early, and the many small files fill the gaps at the end."""


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    """As `--dist loadfile`, but what belongs together stays so, and the order is that of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(ONE_BY_ONE):
            return nodeid
        for alone in APART:
            if nodeid.startswith(alone):
                return alone
        file: str = super()._split_scope(nodeid)
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile | None:
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In one process too: what walks through a whole hub goes first wherever it runs."""
    items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> tuple[int, int]:
    within = next((place for place, file in enumerate(WHILE_EMPTY) if nodeid.startswith(file)), len(WHILE_EMPTY))
    if nodeid.startswith(APART):
        return len(TOGETHER), within
    folders = (place for place, folder in enumerate(LONGEST_FIRST) if nodeid.startswith(folder))
    return next(folders, len(LONGEST_FIRST)), within
