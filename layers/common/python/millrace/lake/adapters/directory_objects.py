"""Objects as files below a directory: for tests, and for a lake on a laptop. Safe among processes of one machine."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from millrace.lake.adapters.memory.objects import tag_of
from millrace.lake.ports.objects import Fetched, ListedObject
from millrace.ledger.domain.errors import BadRequest

LOCK = ".lock"
UNFINISHED = ".unfinished-"


class DirectoryObjects:
    """A file appears by a link or a rename, never half-written; swaps exclude each other by a lock on a file."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.root.mkdir(parents=True, exist_ok=True)

    def list(self, prefix: str, after: str = "") -> Iterator[ListedObject]:
        found = []
        for folder, _, files in os.walk(self.root / prefix.rpartition("/")[0]):
            for file in files:
                name = (Path(folder) / file).relative_to(self.root).as_posix()
                if name.startswith(prefix) and name.encode() > after.encode() and not file.startswith("."):
                    found.append(name)
        for name in sorted(found, key=str.encode):
            try:
                yield ListedObject(name, (self.root / name).stat().st_size)
            except FileNotFoundError:
                continue

    def get(self, name: str) -> Fetched | None:
        try:
            data = self._path(name).read_bytes()
        except FileNotFoundError:
            return None
        return Fetched(data, tag_of(data))

    def put(self, name: str, data: bytes) -> bool:
        path = self._path(name)
        with self._written(path, data) as unfinished:
            try:
                os.link(unfinished, path)
            except FileExistsError:
                return False
            return True

    def swap(self, name: str, data: bytes, tag: str) -> bool:
        path = self._path(name)
        with self._locked():
            found = self.get(name)
            if found is None or found.tag != tag:
                return False
            with self._written(path, data) as unfinished:
                unfinished.replace(path)
            return True

    def delete(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        if not name or any(part in ("", ".", "..") for part in name.split("/")):
            raise BadRequest("An object's name is made of non-empty parts and never leaves its store.", field="name")
        return self.root / name

    @contextmanager
    def _written(self, path: Path, data: bytes) -> Iterator[Path]:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield Path(unfinished)
        finally:
            Path(unfinished).unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.root / LOCK).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
