"""Compacted: up to which position each ledger's events are in the tables, by the current edition (C8)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from millrace.lake.application.editions import Editions, names_in
from millrace.lake.application.quarantine import Entry, ListQuarantine
from millrace.lake.domain.archive import FOLDER, FOREIGN_OBJECT, SUFFIX, read_lines
from millrace.lake.domain.edition import PROCESSED
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger


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

    `Unavailable` while something that compaction could not read is still there: what it held may be in the log alone.
    """
    current = Editions(objects).current()
    if current.tag is None:
        return Compacted(has_run=False)
    done = {name for file in current.edition.files(PROCESSED) for name in names_in(objects, file)}
    # Before the listing: an event that is driven again has its new object first, and leaves quarantine then.
    waits, unknown = _set_aside(objects)
    names = [listed.name for listed in objects.list(FOLDER)]
    for name in names:
        if name in unknown:
            raise _held_by(unknown[name])
    for name in names:
        if name in done or not name.endswith(SUFFIX):
            continue
        for ledger, position in _places_in(objects, name):
            waits[ledger] = min(position, waits.get(ledger, position))
    return Compacted(waits)


def _set_aside(objects: Objects) -> tuple[dict[str, int], dict[str, Entry]]:
    """What is in quarantine, and so in no table: ledger → the first position; object → an entry that tells no ledger.

    A line that tells a ledger but no position may be any of its events.
    """
    waits: dict[str, int] = {}
    unknown: dict[str, Entry] = {}
    for entry in ListQuarantine(objects)():
        if entry.redriven is not None or entry.reason == FOREIGN_OBJECT:
            continue
        if _is_ledger(entry.ledger):
            position = max(1, entry.sequence_position or 1)
            waits[entry.ledger] = min(position, waits.get(entry.ledger, position))
        else:
            unknown.setdefault(entry.object, entry)
    return waits, unknown


def _held_by(entry: Entry) -> Unavailable:
    if entry.sha256 is None:
        return Unavailable(
            "An archive object in quarantine cannot be read, so nothing may be pruned: refill what it held with "
            "`millrace archive verify --refill`, then remove it.",
            object=entry.object,
        )
    return Unavailable(
        "A line in quarantine does not tell which ledger it belongs to, so nothing may be pruned: repair it with "
        f"`millrace quarantine repair {entry.id} --file …`.",
        object=entry.object,
        entry=entry.id,
    )


def _places_in(objects: Objects, name: str) -> list[tuple[str, int]]:
    """The ledgers and positions in an object; a line without a position may be any event of its ledger."""
    found = objects.get(name)
    try:
        return [] if found is None else [_place(line) for line in read_lines(found.data)]
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise Unavailable(
            "An archive object cannot be read; compaction sets it aside, `millrace archive verify` tells what it held.",
            object=name,
        ) from error


def _place(line: Any) -> tuple[str, int]:
    ledger = line.get("ledger") if isinstance(line, dict) else None
    if not _is_ledger(ledger):
        raise ValueError("a line tells no ledger")
    position = line.get("sequence_position")
    if position is None:
        return ledger, 1
    if type(position) is not int or position < 1:
        raise ValueError("a line's position is none")
    return ledger, position


def _is_ledger(name: Any) -> TypeGuard[str]:
    """A name has a contract and a tenant; what damage left of one need not."""
    return isinstance(name, str) and "#" in name
