"""One embedded stack per home folder: the lock its process holds as long as it lives, with its pid inside."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from local.errors import LocalError

FILE = "run.pid"
STOP_SECONDS = 150
"""Long enough for a stack that saves much data; others are gone in seconds."""


class AlreadyRunning(LocalError):
    """Another process holds the lock."""


@contextmanager
def held(home: Path) -> Iterator[None]:
    """Raises `AlreadyRunning`. The system releases the lock even if we are killed, so a stale pid means nothing."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / FILE).open("a+") as file:
        if not _take(file):
            raise AlreadyRunning("The embedded stack is already running.")
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def holder(home: Path) -> int | None:
    """The pid of the process that holds the lock, or None."""
    try:
        with (home / FILE).open("r+") as file:
            if _take(file):
                return None
            content = file.read().strip()
    except FileNotFoundError:
        return None
    return int(content) if content else None


def end(home: Path) -> int | None:
    """Ask the holder to stop and wait until it has; returns its pid, or None if there was none."""
    pid = holder(home)
    if pid is None:
        return None
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while holder(home) == pid:
        if time.monotonic() > deadline:
            raise LocalError(f"The embedded stack (process {pid}) has not stopped in {STOP_SECONDS} s.")
        time.sleep(0.05)
    return pid


def _take(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
