"""A pytest plugin: a socket or a subprocess that a test's event loop leaves open fails that test, not a later one."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator

import pytest

GARBAGE = 100_000
"""So many new objects before the collector looks for cycles by itself: that saves a tenth of a run."""


def pytest_configure() -> None:
    gc.set_threshold(GARBAGE, 50, 50)


def pytest_collection_finish() -> None:
    """What is imported by now lives to the end; to look through it after each test would take long."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Modules that count what they have made want it back before Python ends."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """
    Collects what the test left, if it ran an event loop.

    What was left open then warns. Warnings are errors, and pytest reports this one when it tears the test down.
    """
    ran: list[bool] = []
    close = asyncio.Runner.close

    def remember(runner: asyncio.Runner) -> None:
        ran.append(True)
        close(runner)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.Runner, "close", remember)
        try:
            return (yield)
        finally:
            if ran:
                gc.collect()
