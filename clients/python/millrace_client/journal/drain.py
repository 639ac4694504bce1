"""Draining from this machine: every target in a thread of its own, so that a slow one holds no other back (D6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from millrace.delivery.application.dispatch import Dispatch, Drained
from millrace.delivery.domain.targets import Blocked, Definition
from millrace_client.journal.lock import Draining, drain_lock
from millrace_client.journal.session import JournalSession
from millrace_client.journal.sqlite.database import Database
from millrace_client.journal.sqlite.journal import SqliteJournal
from millrace_client.journal.sqlite.ledger import SqliteLedger
from millrace_client.journal.sqlite.overview import SqliteOverview
from millrace_client.journal.sqlite.take_over import TakeOver
from millrace_client.journal.sqlite.targets import SqliteTargets

MOST_THREADS = 16
TEAMSPACE = "teamspace"
"""Where a block is noted while no team, and so no target, is known."""

Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Result:
    """How a target's drain ended, and how many events it has yet to get: now or later, or once they are restored."""

    drained: Drained
    left: int = 0
    archived: int = 0


@dataclass(frozen=True, slots=True)
class Drain:
    session: JournalSession
    definitions: Sequence[Definition]
    waiting: Progress = lambda target_id, events: None  # noqa: ARG005
    progress: Progress = lambda target_id, attempted: None  # noqa: ARG005
    force: bool = False
    teamspace: bool = True
    """Whether the Teamspace is meant too, so that what keeps it from being a target is told."""

    def __call__(self) -> list[Result]:
        """One result per target, and one for the Teamspace if it is blocked before it has a name."""
        nameless: list[Result] = []
        try:
            with drain_lock(self.session.config.lock_path):
                self._take_over()
                nameless = self._nameless()
                if not self.definitions:
                    return nameless
                with self.session.database() as database:
                    SqliteJournal(database).decide(self.session.config.families)
                with ThreadPoolExecutor(min(len(self.definitions), MOST_THREADS)) as pool:
                    return nameless + list(pool.map(self._one, self.definitions))
        except Draining as error:
            return self._nameless() + [self._locked(one, str(error)) for one in self.definitions]

    def _take_over(self) -> None:
        """What nobody captured is ours from now on, if we are somebody (D1)."""
        unclaimed = self.session.journals.unclaimed(self.session.producer)
        if unclaimed:
            with self.session.database() as database:
                for path in unclaimed:
                    TakeOver(database)(path, self.session.around.clock())

    def _one(self, one: Definition) -> Result:
        session = self.session
        with session.database() as database:
            targets = SqliteTargets(database)
            target = targets.add(one.target(), session.around.clock(), start_now=one.start_now)
            if one.paused:
                return Result(Drained(one.id, blocked=Blocked.PAUSED, detail="paused in the configuration"))
            counts = SqliteOverview(database)
            self.waiting(one.id, counts.unattempted(target) + counts.waiting(target))
            dispatch = replace(self._dispatch(database), progress=lambda count: self.progress(one.id, count))
            drained = dispatch(target, session.receiver(one), force=self.force)
            return _result(drained, counts.unattempted(target) + counts.waiting(target), counts.archived(target))

    def _locked(self, one: Definition, detail: str) -> Result:
        with self.session.database() as database:
            target = SqliteTargets(database).add(one.target(), self.session.around.clock(), start_now=one.start_now)
            return Result(self._dispatch(database).block(target, Blocked.DAEMON_LOCK, detail))

    def _dispatch(self, database: Database) -> Dispatch:
        around = self.session.around
        return Dispatch(SqliteLedger(database), SqliteTargets(database), around.clock, around.random)

    def _nameless(self) -> list[Result]:
        """The Teamspace is no target as long as its team is unknown; why is noted all the same, if it is wanted."""
        if not self.teamspace:
            return []
        elsewhere = self.session.authority.resolved_server_url is None and self.session.config.targets
        gate = None if self.session.teamspace or elsewhere else self.session.teamspace_gate()
        with self.session.database() as database, database.transaction() as connection:
            connection.execute("DELETE FROM drain_block WHERE scope = ?", (TEAMSPACE,))
            if gate is None:
                return []
            connection.execute(
                "INSERT INTO drain_block VALUES (?, ?, ?, ?)",
                (TEAMSPACE, gate[0].value, gate[1], self.session.around.clock()),
            )
        return [Result(Drained(TEAMSPACE, blocked=gate[0], detail=gate[1]))]


def archived_detail(count: int) -> str:
    return f"{count} archived events were not delivered; `millrace sync archive --restore` brings them back"


def _result(drained: Drained, left: int, archived: int) -> Result:
    """Not all is delivered while the bytes of some of it are in an archive."""
    if archived and drained.complete:
        drained = replace(drained, complete=False, detail=archived_detail(archived))
    return Result(drained, left, archived)
