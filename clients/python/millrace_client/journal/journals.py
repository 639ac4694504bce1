"""The journals of a home folder: one per producer (user and team), an anonymous one while neither is known (D1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from millrace.delivery.domain.authority import Bearer, short_digest
from millrace.ledger.domain.names import join_key
from millrace_client.journal.sqlite.database import Database

ANONYMOUS = "event_journal.db"
FOLDER = "journals"


@dataclass(frozen=True, slots=True)
class Journals:
    home: Path

    def path(self, producer: Bearer) -> Path:
        """The URL has no part in it, so that another server gets the same facts (D6)."""
        if not producer.known:
            return self.home / ANONYMOUS
        return self.home / FOLDER / f"journal-{short_digest(join_key(*producer.parts))}.db"

    def open(self, producer: Bearer) -> Database:
        """Makes the journal if it is not there."""
        database = Database(self.path(producer))
        if producer.known:
            try:
                _sign(database, producer)
            except BaseException:
                database.connection.close()
                raise
        return database

    def unclaimed(self, producer: Bearer) -> list[Path]:
        """The journals that are there and that `producer` may take over, the one least is known of first."""
        user, team = producer.parts
        others = [one for one in (Bearer(), Bearer(user, None), Bearer(None, team)) if producer.may_take_over(one)]
        return [path for path in dict.fromkeys(map(self.path, others)) if path.is_file()]

    def paths(self) -> list[Path]:
        """Every journal that is there, the anonymous one first."""
        anonymous, folder = self.home / ANONYMOUS, self.home / FOLDER
        named = sorted(folder.glob("journal-*.db")) if folder.is_dir() else []
        return [path for path in (anonymous, *named) if path.is_file()]

    @contextmanager
    def all(self) -> Iterator[Sequence[Database]]:
        """Every journal that is there; the anonymous one even if it is not, so that there always is one."""
        paths = dict.fromkeys([self.home / ANONYMOUS, *self.paths()])
        with ExitStack() as opened:
            yield [opened.enter_context(Database(path)) for path in paths]


def owner(database: Database) -> Bearer:
    """Whose journal it is; nobody's, if it is the anonymous one."""
    row = database.connection.execute("SELECT user_id, team_slug FROM journal_owner").fetchone()
    return Bearer() if row is None else Bearer(row[0] or None, row[1] or None)


def _sign(database: Database, producer: Bearer) -> None:
    if database.connection.execute("SELECT 1 FROM journal_owner").fetchone() is None:
        with database.transaction() as connection:
            connection.execute(
                "INSERT INTO journal_owner SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM journal_owner)", producer.parts
            )
