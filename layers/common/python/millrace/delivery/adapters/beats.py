"""A beat: something that is done every few seconds, in a thread beside a drain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from millrace.delivery.domain.drains import BEAT_MS


@contextmanager
def beating(beat: Callable[[], None], every_s: float = BEAT_MS / 1000) -> Iterator[None]:
    """A beat that hangs does not hold up the end of the block."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(every_s):
            beat()

    thread = threading.Thread(target=run, name="beat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=1)
