"""Quarantine (C7): list what compaction set aside, show it, and drive it again, repaired or as it is."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from millrace.lake.application.editions import Editions
from millrace.lake.domain.archive import EventWriter
from millrace.lake.domain.edition import QUARANTINE, ROOT
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.errors import BadRequest, NotFound
from millrace.ledger.domain.stored import known

REDRIVEN = f"{ROOT}quarantine/redriven/"
LINES_PER_OBJECT = 1_000

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A line, or a whole object (then there is no `sha256`), why it was set aside, and where it came from.

    `redriven` names the archive object that it went into again.
    """

    id: str
    reason: str
    object: str
    field: str | None = None
    ledger: str | None = None
    event_type: str | None = None
    event_version: int | None = None
    idempotency_key: str | None = None
    sequence_position: int | None = None
    bytes: int | None = None
    sha256: str | None = None
    line: str | None = None
    redriven: str | None = None


def entry_of(line: bytes) -> Entry:
    """An entry as compaction wrote it."""
    return Entry(**known(Entry, json.loads(line)))


@dataclass(frozen=True, slots=True)
class ListQuarantine:
    objects: Objects

    def __call__(self) -> Iterator[Entry]:
        """Every entry of the current edition, once, oldest run first."""
        driven = dict(redriven(self.objects))
        seen: set[str] = set()
        for file in Editions(self.objects).current().edition.files(QUARANTINE):
            found = self.objects.get(file)
            for line in gzip.decompress(found.data).splitlines() if found else ():
                entry = entry_of(line)
                if entry.id not in seen:
                    seen.add(entry.id)
                    yield replace(entry, redriven=driven.get(entry.id))


def redriven(objects: Objects) -> Iterator[tuple[str, str]]:
    """Entries that were driven again, and the archive object that each went into."""
    for listed in objects.list(REDRIVEN):
        found = objects.get(listed.name)
        content = json.loads(found.data) if found else {"ids": []}
        for id_ in content["ids"]:
            yield id_, content["object"]


@dataclass(frozen=True, slots=True)
class ShowQuarantined:
    objects: Objects

    def __call__(self, id_: str) -> Entry:
        """One entry with its line, which is looked up in its object if it was too long to be copied. `NotFound`."""
        entry = next((one for one in ListQuarantine(self.objects)() if one.id == id_), None)
        if entry is None:
            raise NotFound("Nothing in quarantine has this id.", field="id")
        if entry.line is None and entry.sha256 is not None:
            return replace(entry, line=self._looked_up(entry))
        return entry

    def _looked_up(self, entry: Entry) -> str | None:
        found = self.objects.get(entry.object)
        lines = gzip.decompress(found.data).split(b"\n") if found else []
        matching = (line for line in lines if hashlib.sha256(line).hexdigest() == entry.sha256)
        return next((line.decode("utf-8", "replace") for line in matching), None)


@dataclass(frozen=True, slots=True)
class Redrive:
    """Puts quarantined events into the archive again, where the next compaction finds them.

    Safe to repeat: what was driven again already is left alone, and an event that gets in twice is one event.
    """

    objects: Objects
    allowed: Callable[[Entry], bool] = lambda _: True
    """Which entries the caller may know of; others are not there for it."""

    def __call__(self, ids: Sequence[str], repaired: Mapping[str, Sequence[Line]] | None = None) -> dict[str, str]:
        """By id, the object it went into. `repaired` has the lines to use instead of an entry's own.

        `BadRequest` names the entry and the field that still breaks a rule; then nothing was written.
        """
        entries = {entry.id: entry for entry in ListQuarantine(self.objects)() if self.allowed(entry)}
        for id_ in ids:
            if id_ not in entries:
                raise NotFound("Nothing in quarantine has this id.", field=id_)
        done = {id_: name for id_ in ids if (name := entries[id_].redriven)}
        waiting = {
            id_: (repaired or {}).get(id_) or [self._own(entries[id_])] for id_ in dict.fromkeys(ids) if id_ not in done
        }
        batches = [list(waiting)[at : at + LINES_PER_OBJECT] for at in range(0, len(waiting), LINES_PER_OBJECT)]
        made = [(batch, _written(batch, waiting)) for batch in batches]
        for batch, (name, data) in made:
            self.objects.put(name, data)
            marker = hashlib.sha256("\n".join(batch).encode()).hexdigest()[:32]
            self.objects.put(f"{REDRIVEN}{marker}.json", json.dumps({"object": name, "ids": batch}).encode())
            done |= dict.fromkeys(batch, name)
        return done

    def _own(self, entry: Entry) -> Line:
        if entry.sha256 is None:
            raise BadRequest(f"{entry.object} cannot be read; give the lines it should have held.", field=entry.id)
        line = entry.line or ShowQuarantined(self.objects)(entry.id).line or ""
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadRequest("The line is not JSON; give a repaired one.", field=entry.id) from error
        if not isinstance(content, dict):
            raise BadRequest("The line is not an object; give a repaired one.", field=entry.id)
        return content


def _written(batch: Sequence[str], lines: Mapping[str, Sequence[Line]]) -> tuple[str, bytes]:
    writer = EventWriter()
    for id_ in batch:
        for line in lines[id_]:
            try:
                writer.add_line(line)
            except BadRequest as error:
                raise BadRequest(f"{id_}: {error.message}", **{**error.details, "entry": id_}) from error
    # Its first object is processed already: these lines need another name even if they are the same. And another
    # repair needs a name of its own, or it would find the object of one that died half-way in its place.
    made = writer.finish(salt="\n".join(batch))
    return made.name, made.data
