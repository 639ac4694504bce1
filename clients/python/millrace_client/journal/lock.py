"""The drain lock: one process at a time delivers from a journal, or removes from it. Capturing never waits for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from millrace_client.errors import ClientError


class Draining(ClientError):
    """Another process holds the lock."""


@contextmanager
def drain_lock(file: Path) -> Iterator[None]:
    """Raises `Draining`. The system lets go of it even if we are killed, so a file left behind means nothing."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file.open("a+") as held:
        if not _take(held):
            held.seek(0)
            raise Draining(f"Another process ({held.read().strip() or 'unknown'}) is working on this journal.")
        held.truncate(0)
        held.write(f"{os.getpid()}\n")
        held.flush()
        try:
            yield
        finally:
            held.truncate(0)


def _take(file: IO[str]) -> bool:
    # Windows has none; whatever needs no lock works there all the same.
    import fcntl  # noqa: PLC0415

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
