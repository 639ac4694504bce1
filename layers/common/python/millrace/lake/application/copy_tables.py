"""Copy tables: bring the published tables into another store, whose readers see the whole edition or the one before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millrace.lake.application.editions import Editions
from millrace.lake.domain.edition import PUBLISHED, ROOT, Edition, File
from millrace.lake.ports.objects import Objects
from millrace.ledger.domain.errors import BadRequest, Conflict, Unavailable


@dataclass(frozen=True, slots=True)
class CopyTables:
    """`tell` is called with the size of each file that is there, fetched now or by an earlier copy."""

    source: Objects
    copy: Objects
    tell: Callable[[int], None] = lambda _: None

    def __call__(self) -> Edition:
        """The edition that the copy has now, with the published tables alone. An edition of number 0 has none.

        Files that are there already are not fetched again. Those that the copy no longer needs are removed last.
        """
        over = Editions(self.copy).current()
        if set(over.edition.tables) - set(PUBLISHED):
            raise BadRequest("There is a store with tables of its own; name a folder for the copy alone.", field="to")
        found = Editions(self.source).current().edition
        edition = replace(found, tables={name: found.segments(name) for name in PUBLISHED}, doomed=())
        if edition.number == 0 or edition == over.edition:
            return over.edition
        there = {one.name: one.size for one in self.copy.list(ROOT)}
        for file in files_of(edition):
            if there.get(file.name) != file.size:
                self._fetch(file)
            self.tell(file.size)
        if not Editions(self.copy).publish(over, edition):
            raise Conflict("Another copy into the same place was faster; copy again.")
        for name in there.keys() - {file.name for file in files_of(edition)}:
            if name.startswith((f"{ROOT}runs/", f"{ROOT}manifests/")) and name != edition.manifest:
                self.copy.delete(name)
        return edition

    def _fetch(self, file: File) -> None:
        found = self.source.get(file.name)
        if found is None:
            raise Unavailable("A file of the tables was replaced while it was copied; copy again.", object=file.name)
        self.copy.delete(file.name)
        self.copy.put(file.name, found.data)


def files_of(edition: Edition) -> list[File]:
    return [file for name in PUBLISHED for segment in edition.segments(name) for file in segment.files]
