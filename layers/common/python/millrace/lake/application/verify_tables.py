"""Verify tables: prove that the open tables show exactly the files and rows of the current edition (C9)."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.lake.application.editions import Editions
from millrace.lake.domain.edition import PUBLISHED, Edition
from millrace.lake.ports.objects import Objects
from millrace.lake.ports.open_tables import OpenTables, Shown


@dataclass(frozen=True, slots=True)
class TableVerdict:
    """`missing`: files of the edition that the open table does not show; `extra`: the other way round."""

    table: str
    there: bool
    rows: int
    expected_rows: int
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return self.there and not self.missing and not self.extra and self.rows == self.expected_rows


@dataclass(frozen=True, slots=True)
class VerifyTables:
    objects: Objects
    tables: OpenTables

    def __call__(self) -> tuple[Edition, list[TableVerdict]]:
        """The current edition and a verdict on each table; of edition 0 there are none yet.

        A run that publishes at this moment may make them differ until it has ended.
        """
        shown = {table: self.tables.shown(table) for table in PUBLISHED}
        edition = Editions(self.objects).current().edition
        if edition.number == 0:
            return edition, []
        return edition, [_verdict(table, shown[table], edition) for table in PUBLISHED]


def _verdict(table: str, shown: Shown | None, edition: Edition) -> TableVerdict:
    files = set(edition.files(table))
    seen = shown.files if shown else frozenset()
    return TableVerdict(
        table,
        shown is not None,
        shown.rows if shown else 0,
        edition.rows(table),
        tuple(sorted(files - seen)),
        tuple(sorted(seen - files)),
    )
