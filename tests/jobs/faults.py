"""A workspace that dies at a chosen call, before or after its effect, and lets others look on at every call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from glue_jobs.workspace import Workspace
from millrace.lake.domain.edition import File
from millrace.lake.ports.objects import Fetched, ListedObject


class Killed(Exception):
    """The process ended here."""


class FaultyWorkspace:
    """`die_at`: the number of the call to die at, counted from 1, before its effect, or after it if negative."""

    def __init__(self, inner: Workspace, die_at: int = 0, look: Callable[[int], None] = lambda _: None) -> None:
        self.inner = inner
        self.die_at = die_at
        self.look = look
        self.calls = 0

    @property
    def objects(self) -> FaultyWorkspace:
        return self

    def _do(self, call: Callable[..., Any], *arguments: Any) -> Any:
        self.calls += 1
        self.look(self.calls)
        if self.calls == self.die_at:
            raise Killed
        result = call(*arguments)
        if self.calls == -self.die_at:
            raise Killed
        return result

    def paths(self, files: Iterable[File]) -> list[str]:
        return list(self._do(self.inner.paths, files))

    def output(self, folder: str) -> str:
        return str(self._do(self.inner.output, folder))

    def written(self, folder: str) -> tuple[File, ...]:
        return tuple(self._do(self.inner.written, folder))

    def list(self, prefix: str, after: str = "") -> Iterator[ListedObject]:
        return iter(self._do(lambda: [*self.inner.objects.list(prefix, after)]))

    def get(self, name: str) -> Fetched | None:
        found: Fetched | None = self._do(self.inner.objects.get, name)
        return found

    def put(self, name: str, data: bytes) -> bool:
        return bool(self._do(self.inner.objects.put, name, data))

    def swap(self, name: str, data: bytes, tag: str) -> bool:
        return bool(self._do(self.inner.objects.swap, name, data, tag))

    def delete(self, name: str) -> None:
        self._do(self.inner.objects.delete, name)
