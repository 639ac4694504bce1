"""Follow the edition: bring every open table to the files of the current edition, which the pointer names (C9).

The pointer is what publishes a run. This step comes after it and derives everything from it, so any run may repeat it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millrace.lake.application.editions import Editions
from millrace.lake.domain.edition import PUBLISHED
from millrace.lake.ports.objects import Objects
from millrace.lake.ports.open_tables import OpenTables
from millrace.ledger.domain.errors import Unavailable

TRIES = 10


@dataclass(frozen=True, slots=True)
class FollowEdition:
    """`tell` hears of each table that is brought forward."""

    objects: Objects
    tables: OpenTables
    tell: Callable[[str], None] = lambda _: None

    def __call__(self) -> None:
        for table in PUBLISHED:
            if not any(self._follows(table) for _ in range(TRIES)):
                raise Unavailable("Other runs kept changing a table; run again.", table=table)

    def forget(self, before_ms: int) -> int:
        """Let go of what readers saw before this time. Returns how many objects went."""
        return sum(self.tables.forget(table, before_ms) for table in PUBLISHED)

    def _follows(self, table: str) -> bool:
        # The table is looked at before the pointer: whoever changes it later has seen an edition at least as new, so
        # a table never goes back, and is never ahead of the pointer.
        over = self.tables.shown(table)
        edition = Editions(self.objects).current().edition
        files = frozenset(edition.files(table))
        if edition.number == 0 or (over is not None and over.files == files):
            return True
        self.tell(f"showing {edition.rows(table)} rows of {table} to Iceberg's readers")
        return self.tables.show(table, over, files, edition.run)
