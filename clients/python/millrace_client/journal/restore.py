"""Restore: put archived bytes back into the journal, so that they can be read and delivered again (D3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from millrace.delivery.domain.events import captured
from millrace.ledger.domain.errors import MillraceError, Unavailable
from millrace_client.journal.ports import ArchivedPayload, ArchiveFile, Archives


@dataclass(frozen=True, slots=True)
class Restored:
    """`problems`: why a file could not be read, by its name; its events stay archived."""

    events: int
    size: int
    files: Sequence[str]
    problems: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Restore:
    archives: Archives
    file: ArchiveFile
    clock: Callable[[], int]
    progress: Callable[[int], None] = lambda _: None

    def __call__(self, *, dry_run: bool = False) -> Restored:
        """File by file, each whole or not at all. The files stay where they are."""
        events, size, files, problems = 0, 0, list[str](), dict[str, str]()
        by_file = sorted(self.archives.archived(), key=lambda one: (one.where, one.position))
        for where, group in groupby(by_file, key=lambda one: one.where):
            wanted = list(group)
            try:
                bodies = self._bodies(where, wanted)
            except MillraceError as error:
                problems[where] = error.message
                continue
            if not dry_run:
                self.archives.restore(bodies, where, self.clock())
            files.append(where)
            events += len(bodies)
            size += sum(map(len, bodies.values()))
            self.progress(len(bodies))
        return Restored(events, size, files, problems)

    def _bodies(self, where: str, wanted: Sequence[ArchivedPayload]) -> dict[int, bytes]:
        found = self.file.read(where)
        bodies = {one.position: found[one.event_id] for one in wanted if one.event_id in found}
        for one in wanted:
            body = bodies.get(one.position)
            if body is None or len(body) != one.size or captured(body).digest != one.digest:
                raise Unavailable("It does not hold what the journal put into it; nothing of it was restored.")
        return bodies
