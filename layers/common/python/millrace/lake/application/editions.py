"""Editions: find the current one, and make a new one current if nobody else did meanwhile (C6)."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass

from millrace.lake.domain.edition import POINTER, Edition
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.errors import Unavailable


def names_in(objects: Objects, file: str) -> list[str]:
    """A list of processed archive objects."""
    found = objects.get(file)
    if found is None:
        raise Unavailable("A list of processed objects is gone.", object=file)
    names: list[str] = json.loads(gzip.decompress(found.data))
    return names


@dataclass(frozen=True, slots=True)
class Current:
    """The edition that the pointer told, and the pointer's tag; no tag: there is no pointer yet."""

    edition: Edition
    tag: str | None


@dataclass(frozen=True, slots=True)
class Editions:
    objects: Objects

    def current(self) -> Current:
        pointer = self.objects.get(POINTER)
        if pointer is None:
            return Current(Edition(), None)
        manifest = self.objects.get(json.loads(pointer.data)["manifest"])
        if manifest is None:
            raise Unavailable("The pointer names a manifest that is not there.")
        return Current(Edition.parse(manifest.data), pointer.tag)

    def publish(self, over: Current, edition: Edition) -> bool:
        """False: another run was faster, and nothing of this one is visible. Safe to call again after any error.

        A lost answer may make it False although others have built on this one: its files are never the loser's to
        delete, `remove_unreachable` does that.
        """
        self.objects.put(edition.manifest, edition.to_json())
        pointer = json.dumps({"manifest": edition.manifest, "number": edition.number}).encode()
        if over.tag is None:
            swapped = self.objects.put(POINTER, pointer)
        else:
            swapped = self.objects.swap(POINTER, pointer, over.tag)
        return swapped or self._is_in(edition.run)

    def _is_in(self, run: str) -> bool:
        """The answer to an earlier try may have been lost, and another run may have come after it."""
        now = self.current().edition
        return now.run == run or any(segment.run == run for table in now.tables for segment in now.segments(table))
