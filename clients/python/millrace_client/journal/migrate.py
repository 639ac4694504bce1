"""Migrate: bring what old queues and journals hold into ours, each source by itself, as often as you like (D10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from millrace.delivery.domain.events import captured
from millrace.delivery.domain.families import Families
from millrace.ledger.domain.errors import MillraceError, Rejected
from millrace_client.journal.migration_ports import (
    Contents,
    Import,
    Imported,
    Imports,
    OldQueue,
    Queued,
    Sources,
    Unreadable,
)

UNKNOWN = "unknown"
GONE = "Events that an old queue had delivered were deleted by it then; only what is still queued can be migrated."


@dataclass(frozen=True, slots=True)
class SourceReport:
    """`problem`: why the source could not be read; it is untouched."""

    source: OldQueue
    imported: Imported = field(default_factory=Imported)
    body_uploads: int = 0
    body_upload_failures: int = 0
    cleaned: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Migrated:
    sources: Sequence[SourceReport]
    conflicts: int
    cleanup_blocked: bool = False
    strangers: Sequence[str] = ()
    """Files that are neither queues nor journals by their name."""

    @property
    def ok(self) -> bool:
        return not self.conflicts and not any(report.problem for report in self.sources)


@dataclass(frozen=True, slots=True)
class Migrate:
    sources: Sources
    imports: Imports
    families: Families
    clock: Callable[[], int]
    progress: Callable[[OldQueue], None] = lambda _: None

    def __call__(self, *, clean: bool = False) -> Migrated:
        """A source that cannot be read hurts no other. `clean` deletes what is safe here from the sources."""
        reports = []
        for source in self.sources.find():
            reports.append(self._source(source))
            self.progress(source)
        conflicts = len(self.imports.conflicts())
        if clean and not conflicts:
            reports = [self._cleaned(report) for report in reports]
        return Migrated(reports, conflicts, clean and bool(conflicts), self.sources.strangers())

    def _source(self, source: OldQueue) -> SourceReport:
        try:
            contents = self.sources.read(source)
        except MillraceError as error:
            return SourceReport(source, problem=error.message)
        rows, unreadable = self._rows(contents)
        imported = self.imports.take(source, rows, unreadable, self.clock())
        return SourceReport(source, imported, contents.body_uploads, contents.body_upload_failures)

    def _rows(self, contents: Contents) -> tuple[list[Import], list[Unreadable]]:
        rows: list[Import] = []
        unreadable: list[Unreadable] = []
        for queued in contents.queued:
            try:
                rows.append(self._row(queued))
            except Rejected as error:
                unreadable.append(Unreadable(queued.event_id, queued.data, error.message))
        return rows, unreadable

    def _row(self, queued: Queued) -> Import:
        """
        Ids are never rewritten: a row that disagrees with its own data is for an operator.

        Imported events have no coalesce key: nobody knows which of two queues has the newer one.
        """
        event = captured(queued.data)
        if event.event_id != queued.event_id:
            raise Rejected("The row and its data have different event ids.", field="event_id")
        family = self.families.of(event.event_type)
        return Import(event, family, queued.timestamp, queued.retry_count, queued.deliveries)

    def _cleaned(self, report: SourceReport) -> SourceReport:
        """Read and imported once more, so that only what the journal has is deleted."""
        if report.problem:
            return report
        try:
            queued = self.sources.read(report.source)
            if self.imports.take(report.source, *self._rows(queued), self.clock()).conflicts:
                return report
            return replace(report, cleaned=self.sources.clean(report.source, queued.queued))
        except MillraceError as error:
            return replace(report, problem=error.message)
