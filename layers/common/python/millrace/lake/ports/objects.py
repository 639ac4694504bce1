"""What the archive, the jobs and the tools around them need of an object store. Each docstring is the contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object as a listing shows it."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """An object's content and the tag that names this very content to `swap`."""

    data: bytes
    tag: str


class Objects(Protocol):
    """Objects by name, `a/b/c`. A write is seen whole or not at all, and by every later read."""

    def list(self, prefix: str, after: str = "") -> Iterator[ListedObject]:
        """Every object whose name starts with `prefix` and is greater than `after`, in order of their names' UTF-8
        bytes. No more is read than is looked at."""

    def get(self, name: str) -> Fetched | None:
        """The object, or None if there is none."""

    def put(self, name: str, data: bytes) -> bool:
        """Create the object; False, changing nothing, if the name is taken."""

    def swap(self, name: str, data: bytes, tag: str) -> bool:
        """Replace the object whose content has this tag; False, changing nothing, if it is another by now."""

    def delete(self, name: str) -> None:
        """Remove the object; one that is not there is removed already."""
