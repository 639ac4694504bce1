"""`Together` on threads: independent calls run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import current_thread
from typing import Any

PREFIX = "together"
"""Of the threads in which single calls run."""


@dataclass(slots=True)
class Threads:
    """The pool is made on first use, so a frozen snapshot of the process holds no threads."""

    workers: int = 16
    prefix: str = PREFIX
    """Another one makes an outer pool, whose calls may use this one."""
    _pool: ThreadPoolExecutor | None = field(default=None)

    def __call__(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        if len(calls) <= 1 or current_thread().name.startswith(self.prefix):
            return [call() for call in calls]  # a worker that waited for other workers could wait for ever
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix=self.prefix)
        futures = [self._pool.submit(call) for call in calls[1:]]
        errors: list[Exception] = []
        results: list[Any] = []
        for take in (calls[0], *(future.result for future in futures)):
            try:
                results.append(take())
            except Exception as error:  # noqa: BLE001 - raised below, once every call has ended
                errors.append(error)
        if errors:
            raise errors[0]
        return results
