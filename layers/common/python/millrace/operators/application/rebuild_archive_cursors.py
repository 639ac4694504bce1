"""Rebuild the archive's cursors: each ledger's stands after the last page that an archive object holds."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from millrace.lake.domain.archive import FOLDER, read_lines
from millrace.lake.ports.objects import Objects
from millrace.ledger.application.heads import find_head
from millrace.ledger.application.raise_cursor import raise_cursor
from millrace.ledger.domain.consumers import ARCHIVE_CONSUMER
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Log, State, Together
from millrace.operators.domain.rebuilt import ARCHIVE_AHEAD, UNREADABLE_OBJECTS, Rebuilt

SIDE_BY_SIDE = 16


@dataclass(frozen=True, slots=True)
class RebuildArchiveCursors:
    log: Log
    state: State
    objects: Objects
    together: Together

    def __call__(self, after: str, report: Rebuilt) -> Iterator[str]:
        """Yields the name of each object once the cursors are raised over what it holds."""
        names = (listed.name for listed in self.objects.list(FOLDER) if listed.name > after)
        while group := list(islice(names, SIDE_BY_SIDE)):
            highest: dict[str, int] = {}
            for held in self.together([partial(self._held, name, report) for name in group]):
                for ledger, position in held.items():
                    highest[ledger] = max(position, highest.get(ledger, 0))
            moved = self._all(partial(self._raise, name, position, report) for name, position in highest.items())
            report.count("archive cursors raised", sum(moved))
            report.count("archive objects", len(group))
            yield from group

    def _held(self, name: str, report: Rebuilt) -> dict[str, int]:
        """By ledger, the highest position in an object."""
        highest: dict[str, int] = {}
        try:
            fetched = self.objects.get(name)
            for line in read_lines(fetched.data) if fetched is not None else ():
                ledger, position = line["ledger"], line.get("sequence_position") or 0
                highest[ledger] = max(position, highest.get(ledger, 0))
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zlib.error):
            report.find(UNREADABLE_OBJECTS, name)
        return highest

    def _raise(self, name: str, position: int, report: Rebuilt) -> bool:
        """To the end of the last page that is archived whole. Rather is a page archived twice than never."""
        ledger = Ledger.to_read(name)
        page = self.log.holding(ledger, position) if position else None
        if page is None or page.end < position:
            head = find_head(self.log, ledger, 0)
            if head < position:
                report.find(ARCHIVE_AHEAD, f"{name} {head + 1}-{position}")
            to = head
        else:
            to = page.end if page.end == position else page.first - 1
        return to > 0 and raise_cursor(self.state, ledger, ARCHIVE_CONSUMER, to)

    def _all(self, calls: Iterable[partial[bool]]) -> list[bool]:
        waiting, done = iter(calls), list[bool]()
        while group := list(islice(waiting, SIDE_BY_SIDE)):
            done += self.together(group)
        return done
