"""Rebuild: make State and the partition index again from Log, Claims and the archive's objects.

Everything it writes only adds or goes up, on condition of what is stored, so it may run again, beside another one, and
while the hub is in use. Its order matters: claims first, since writers rely on them; cursors of the archive before any
ledger is registered, since a sweep rings for registered ledgers, and an archiver without a cursor would begin anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.ports import Together
from millrace.operators.application.bookmark import END, Bookmark
from millrace.operators.application.check_targets import CheckTargets
from millrace.operators.application.rebuild_archive_cursors import RebuildArchiveCursors
from millrace.operators.application.rebuild_claims import RebuildClaims
from millrace.operators.application.rebuild_ledger import RebuildLedger
from millrace.operators.domain.rebuilt import UNREADABLE_LEDGERS, Rebuilt
from millrace.operators.ports import Key, LogScan, Scanned

T = TypeVar("T")
SEGMENTS = 8
"""Of a scan, side by side."""
CLAIMS, PAGES, OBJECTS, LEDGERS = "claims", "pages", "objects", "ledgers"
"""What progress is told of."""


@dataclass(frozen=True, slots=True)
class Rebuild:
    log_scan: LogScan
    claims: RebuildClaims | None
    """None: Claims is known to be as it was."""
    archive: RebuildArchiveCursors
    ledger: RebuildLedger
    targets: CheckTargets
    together: Together
    tell: Callable[[str, int], None] = lambda _what, _count: None

    def __call__(self, bookmark: Bookmark) -> Rebuilt:
        """Goes on where the bookmark is. Raises `Unavailable` if storage fails: run it again."""
        report = bookmark.report
        if self.claims is not None:
            self._segments(bookmark, CLAIMS, self.claims.scan, partial(self.claims.check, report=report))
        for name in self.archive(bookmark.object, report):
            bookmark.pass_object(name)
            self.tell(OBJECTS, 1)
        self._segments(bookmark, PAGES, self.log_scan.scan, partial(self._ledger, bookmark))
        self.targets(report)
        bookmark.place.clear()
        return report

    def _segments(
        self,
        bookmark: Bookmark,
        phase: str,
        scan: Callable[[int, int, Key | None], Scanned[T]],
        work: Callable[[T], None],
    ) -> None:
        self.together([partial(self._segment, bookmark, phase, number, scan, work) for number in range(SEGMENTS)])

    def _segment(
        self,
        bookmark: Bookmark,
        phase: str,
        number: int,
        scan: Callable[[int, int, Key | None], Scanned[T]],
        work: Callable[[T], None],
    ) -> None:
        after = bookmark.after(phase, number)
        while not isinstance(after, str):
            part = scan(number, SEGMENTS, after)
            for one in part.found:
                work(one)
            self.tell(phase, part.rows)
            bookmark.move(phase, number, part.after)
            after = END if part.after is None else part.after

    def _ledger(self, bookmark: Bookmark, name: str) -> None:
        """A ledger that cannot be read holds no other back."""
        try:
            self.ledger(name, bookmark)
        except Unavailable:
            raise
        except Exception:  # noqa: BLE001 - named in the report, whatever it is
            bookmark.report.find(UNREADABLE_LEDGERS, name)
        bookmark.leave(name)
        self.tell(LEDGERS, 1)
