"""Announce: change a row and tell of the change by an event, in order, even if the process dies between the two.

The row carries the event of its last change until that is known to be committed. Whoever wants to change the row next
commits that event first, so events stand in the log in the order of the row's versions. Committing one twice is
harmless: its id commits once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.ledger.application.commit import Commit
from millrace.ledger.domain.errors import Contention
from millrace.ledger.domain.page import Origin
from millrace.streams.ports import Announcement, Rows, VersionedRow

TRIES = 12
TRAIL = 8
"""How many changes by others may lie between a write and the storage client's own retry of it."""

Content = Mapping[str, Any]
Decide = Callable[[VersionedRow | None], tuple[Content, Announcement] | None]
"""The next content and its event, given the row as it stands; None leaves it. It may raise to refuse."""


def _as_it_is(content: Content) -> Content:
    return content


@dataclass(frozen=True, slots=True)
class Announce:
    rows: Rows
    commit: Commit
    nonce: Callable[[], str]
    pause: Callable[[int], None]
    undo: Callable[[Content], Content] = _as_it_is
    """The content without its last change, whose event's id turned out to belong to other content."""

    def change(self, group: str, key: str, decide: Decide) -> tuple[VersionedRow, bool]:
        """The row after the change, its event pending, and True; or as `decide` left it, and False."""
        row = self.rows.get(group, key)
        for attempt in range(TRIES):
            if attempt:
                self.pause(attempt)
            row = self.settled(group, key, row)
            decided = decide(row)
            if decided is None:
                return row or VersionedRow(0, {}, ""), False
            mine = self._after(row, *decided)
            winner = self.rows.put(group, key, mine)
            if winner is None or mine.nonce in winner.nonces:
                return mine, True
            row = winner
        raise Contention("Too many writers on this; send the same request again.")

    def settled(self, group: str, key: str, row: VersionedRow | None) -> VersionedRow | None:
        """The row with nothing pending: what was, is committed now."""
        for _ in range(TRIES):
            if row is None or row.pending is None:
                return row
            self.settle(group, key, row)
            row = self.rows.get(group, key)
        raise Contention("Too many writers on this; send the same request again.")

    def settle(self, group: str, key: str, row: VersionedRow) -> int | None:
        """Commit the row's event, which may have happened before; its position, or None if the id is taken."""
        if row.pending is None:
            return None
        outcome = self.commit(row.pending.ledger, [row.pending.draft], Origin(row.pending.client_id))[0]
        self.conclude(group, key, row, outcome.position)
        return outcome.position

    def conclude(self, group: str, key: str, row: VersionedRow, position: int | None) -> None:
        """Record what became of the row's event. Losing this loses nothing: the next change does it again."""
        if position is not None:
            self.rows.settle(group, key, row.version)
        else:
            self.rows.put(group, key, self._after(row, self.undo(row.content)))

    def _after(self, row: VersionedRow | None, content: Content, pending: Announcement | None = None) -> VersionedRow:
        before, trail = (row.version, row.nonces[-TRAIL:]) if row else (0, ())
        return VersionedRow(before + 1, content, self.nonce(), pending, trail)
