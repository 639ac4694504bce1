"""Saves: what a stack that keeps its data has written, whole and never half. The newest one counts.

A save is a folder with the emulator's state, the bucket's objects and `save.json`. It gets its number, by a rename,
when everything is in it. It holds the stack's secrets, like all of the home folder.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from local.errors import LocalError

FOLDER = "saves"
MANIFEST = "save.json"
STATE, OBJECTS = "state", "s3"


class CannotContinue(LocalError):
    """The newest save does not fit what was asked for."""


@dataclass(frozen=True)
class Save:
    folder: Path
    saved_at: str
    port: int
    emulator: str
    """Its version: another one may read the state differently."""

    @property
    def number(self) -> int:
        return int(self.folder.name)


def emulator_version() -> str:
    return version("ministack")


def newest(home: Path) -> Save | None:
    for folder in sorted(_numbered(home), key=lambda folder: -int(folder.name)):
        with suppress(OSError, ValueError, TypeError):
            return Save(folder, **json.loads((folder / MANIFEST).read_text()))
    return None


def to_continue(home: Path, port: int) -> Save | None:
    """The save that a stack on this port can go on with, or None if there is none. Raises `CannotContinue`."""
    save = newest(home)
    if save is None:
        return None
    if save.port != port:
        raise CannotContinue(
            f"The kept data belongs to port {save.port}, because its addresses do: make run KEEP=1 PORT={save.port}\n"
            f"To start without it: make run KEEP=new PORT={port}"
        )
    if save.emulator != emulator_version():
        raise CannotContinue(
            f"The kept data was saved by version {save.emulator} of the emulator, and this is {emulator_version()}.\n"
            f"To start without it: make run KEEP=new PORT={port}"
        )
    return save


def unpack(save: Save, state: Path) -> None:
    """Put a save where the emulator works; the save stays as it is."""
    shutil.copytree(save.folder / STATE, state / STATE, dirs_exist_ok=True)
    shutil.copytree(save.folder / OBJECTS, state / OBJECTS, dirs_exist_ok=True)


def draft(home: Path) -> Path:
    """An empty folder for the next save."""
    folder = home / FOLDER / "new"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    return folder


def finish(home: Path, port: int) -> Save:
    """Give the draft its number: from now on it is the newest save."""
    written = home / FOLDER / "new"
    number = 1 + max((int(folder.name) for folder in _numbered(home)), default=0)
    save = Save(home / FOLDER / str(number), datetime.now(UTC).isoformat(timespec="seconds"), port, emulator_version())
    content = {name: value for name, value in asdict(save).items() if name != "folder"}
    (written / MANIFEST).write_text(json.dumps(content) + "\n")
    written.rename(save.folder)
    return save


def drop_older(home: Path) -> None:
    save = newest(home)
    for folder in _numbered(home):
        if save is not None and int(folder.name) < save.number:
            shutil.rmtree(folder, ignore_errors=True)


def link(source: Path, target: Path) -> None:
    """A copy that costs no space. The emulator replaces files and never changes them, so the copy stays as it is."""
    shutil.copytree(source, target, copy_function=os.link)


def _numbered(home: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError):
        yield from [folder for folder in (home / FOLDER).iterdir() if folder.name.isdigit()]
