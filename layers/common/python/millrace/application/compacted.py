"""Compacted: up to which position each ledger's events are in the tables, as one moment's snapshot tells it (C8)."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from millrace.application.quarantine import ListQuarantine
from millrace.application.snapshots import Snapshots
from millrace.domain.archive import FOLDER, SUFFIX, read_lines
from millrace.domain.errors import Unavailable
from millrace.domain.ledger import Ledger
from millrace.domain.snapshot import PROCESSED
from millrace.ports_lake import Objects

FOREIGN = "foreign_object"
"""Compaction's reason for an object that is none of the archive's."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """A `Holder`. Positions above the archive's cursor are not its business: that cursor holds them."""

    waits: dict[str, int] = field(default_factory=dict)
    """Ledger → the first position that is in quarantine, or in an object that no run has processed."""
    has_run: bool = True

    def __call__(self, ledger: Ledger) -> int | None:
        if not self.has_run:
            return 0
        return self.waits[ledger.name] - 1 if ledger.name in self.waits else None


def compacted(objects: Objects) -> Compacted:
    """As of now. Only objects that wait for compaction are read.

    `Unavailable` while an object that compaction could not read is still there: what it held may be in the log alone.
    """
    current = Snapshots(objects).current()
    if current.tag is None:
        return Compacted(has_run=False)
    done = {name for file in current.snapshot.files(PROCESSED) for name in _names(objects, file)}
    names = [listed.name for listed in objects.list(FOLDER)]
    waits = _set_aside(objects, frozenset(names))
    for name in names:
        if name in done or not name.endswith(SUFFIX):
            continue
        for line in _lines(objects, name):
            ledger, position = line["ledger"], line.get("sequence_position") or 1
            waits[ledger] = min(position, waits.get(ledger, position))
    return Compacted(waits)


def _set_aside(objects: Objects, there: frozenset[str]) -> dict[str, int]:
    """Ledger → the first position that is in quarantine, and so in no table."""
    waits: dict[str, int] = {}
    for entry in ListQuarantine(objects)():
        if entry.redriven is not None:
            continue
        if entry.ledger is not None and entry.sequence_position is not None:
            waits[entry.ledger] = min(entry.sequence_position, waits.get(entry.ledger, entry.sequence_position))
        if entry.sha256 is None and entry.reason != FOREIGN and entry.object in there:
            raise Unavailable(
                "An archive object in quarantine cannot be read, so nothing may be pruned: refill what it held with "
                "`millrace archive verify --refill`, then remove it.",
                object=entry.object,
            )
    return waits


def _lines(objects: Objects, name: str) -> list[dict[str, Any]]:
    found = objects.get(name)
    try:
        return [] if found is None else list(read_lines(found.data))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise Unavailable(
            "An archive object cannot be read; compaction sets it aside, `millrace archive verify` tells what it held.",
            object=name,
        ) from error


def _names(objects: Objects, file: str) -> list[str]:
    found = objects.get(file)
    if found is None:
        raise Unavailable("A list of compacted objects is gone.", object=file)
    names: list[str] = json.loads(gzip.decompress(found.data))
    return names
