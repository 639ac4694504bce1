"""Gives Spark paths that it can read and folders that it can write, and puts what it wrote into the object store.

On Glue, Spark reads and writes `s3://` itself. On a laptop it has no S3 client, so objects are staged as files: each is
fetched once, and what Spark writes is put into the store file by file. A directory needs neither.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from millrace.lake.domain.edition import File
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.errors import Unavailable


class Workspace(Protocol):
    @property
    def objects(self) -> Objects: ...
    @property
    def root(self) -> str:
        """The store's address, for those who read it with other tools; it ends with a slash."""

    def paths(self, files: Iterable[File]) -> list[str]:
        """Paths under which Spark can read these objects; each ends with the object's name."""

    def output(self, folder: str) -> str:
        """The path of a folder for Spark to write to, where nothing is yet."""

    def written(self, folder: str) -> tuple[File, ...]:
        """What Spark wrote to the folder, as objects of the store."""


@dataclass(frozen=True, slots=True)
class DirectWorkspace:
    """`root` is the store as Spark knows it, `s3://bucket/prefix/` or `file:///directory/`."""

    objects: Objects
    root: str

    def paths(self, files: Iterable[File]) -> list[str]:
        return [self.root + file.name for file in files]

    def output(self, folder: str) -> str:
        return self.root + folder

    def written(self, folder: str) -> tuple[File, ...]:
        return tuple(File(one.name, one.size) for one in self.objects.list(folder) if _is_data(one.name))


@dataclass(frozen=True, slots=True)
class StagedWorkspace:
    """`stage` is kept between runs: what never changes is fetched once."""

    objects: Objects
    stage: Path
    root: str

    def paths(self, files: Iterable[File]) -> list[str]:
        return [self._fetched(file).as_uri() for file in files]

    def output(self, folder: str) -> str:
        return (self.stage / folder).absolute().as_uri()

    def written(self, folder: str) -> tuple[File, ...]:
        files = []
        for path in sorted((self.stage / folder).iterdir()):
            if _is_data(path.name):
                self.objects.put(folder + path.name, path.read_bytes())
                files.append(File(folder + path.name, path.stat().st_size))
        return tuple(files)

    def forget(self, keep: Sequence[str]) -> None:
        """Drop staged files of other runs than these, and the archive objects, which are not read again."""
        shutil.rmtree(self.stage / "ledger", ignore_errors=True)
        runs = self.stage / "lake" / "runs"
        for folder in runs.iterdir() if runs.is_dir() else ():
            if folder.name not in keep:
                shutil.rmtree(folder, ignore_errors=True)

    def _fetched(self, file: File) -> Path:
        path = (self.stage / file.name).absolute()
        if not path.exists() or path.stat().st_size != file.size:
            found = self.objects.get(file.name)
            if found is None:
                raise Unavailable("An object that was listed is gone.", object=file.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".")
            with os.fdopen(handle, "wb") as half:
                half.write(found.data)
            Path(unfinished).replace(path)
        return path


def _is_data(name: str) -> bool:
    """Spark also leaves markers and checksums, whose names begin with `_` or a dot, and some stores mark folders."""
    last = name.rpartition("/")[2]
    return bool(last) and not last.startswith(("_", "."))
