"""Imports into several journals: a source of ours into our own, every other into the anonymous one (D1, D10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from millrace.delivery.domain.authority import short_digest
from millrace.delivery.domain.families import Families
from millrace.ledger.domain.errors import NotFound
from millrace_client.journal.migration_ports import (
    Import,
    Imported,
    MigrationConflict,
    OldQueue,
    TwoContents,
    Unreadable,
)
from millrace_client.journal.session import JournalSession
from millrace_client.journal.sqlite.imports import SqliteImports


@dataclass(frozen=True, slots=True)
class RoutedImports:
    """What a journal has stays there, however often its source is read: it may have been taken over by somebody."""

    journals: Sequence[SqliteImports]
    route: Callable[[OldQueue], SqliteImports]
    """Where the events go that no journal has."""
    own: SqliteImports | None = None
    """Ours, if we are known."""

    def take(self, source: OldQueue, rows: Sequence[Import], unreadable: Sequence[Unreadable], now_ms: int) -> Imported:
        homes = [self._home(source, row.event.event_id, row.event.digest) for row in rows]
        bad_homes = [self._home(source, bad.event_id) for bad in unreadable]
        fresh = known = conflicts = 0
        for journal in self.journals:
            taken = journal.take(
                source,
                [row for row, home in zip(rows, homes, strict=True) if home is journal],
                [bad for bad, home in zip(unreadable, bad_homes, strict=True) if home is journal],
                now_ms,
            )
            fresh, known, conflicts = fresh + taken.fresh, known + taken.known, conflicts + taken.conflicts
        return Imported(fresh, known, conflicts)

    def conflicts(self) -> Sequence[MigrationConflict]:
        return [one for journal in self.journals for one in journal.conflicts()]

    def compare(self, event_id: str) -> Sequence[TwoContents]:
        return [one for journal in self.journals for one in journal.compare(event_id)]

    def resolve(self, event_id: str, keep: str, source: str | None, families: Families, now_ms: int) -> int:
        having = [one for one in self.journals if any(found.event_id == event_id for found in one.conflicts())]
        if not having:
            raise NotFound("This event has no open migration conflict.", event_id=event_id)
        return sum(one.resolve(event_id, keep, source, families, now_ms) for one in having)

    def _home(self, source: OldQueue, event_id: str, digest: bytes | None = None) -> SqliteImports:
        """An event of nobody is the one that somebody has; one of ours is ours, whoever else has the same."""
        route = self.route(source)
        having = (one for one in self.journals if one.has(source, event_id, None if route is self.own else digest))
        return next(having, route)


@contextmanager
def routed_imports(session: JournalSession) -> Iterator[RoutedImports]:
    """A queue is ours if its name has the digest of our scope. That of another cannot be reversed: it is nobody's."""
    if session.producer.known:
        session.journals.open(session.producer).connection.close()
    scope = session.authority.derived_queue_scope
    ours = short_digest(scope) if scope else None
    with session.journals.all() as databases:
        journals = {database.path: SqliteImports(database) for database in databases}
        own, anonymous = journals[session.journals.path(session.producer)], journals[databases[0].path]

        def route(source: OldQueue) -> SqliteImports:
            return own if source.scope == ours and not source.is_journal else anonymous

        yield RoutedImports(list(journals.values()), route, own if session.producer.known else None)
