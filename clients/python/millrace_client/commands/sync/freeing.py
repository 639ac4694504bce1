"""What `sync gc` and `sync archive` share: the journal while nobody else drains it, a bar, and how they report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from millrace_client.commands.output import err, out
from millrace_client.journal.collect import Collected
from millrace_client.journal.lock import drain_lock
from millrace_client.journal.session import JournalSession
from millrace_client.journal.sqlite.database import Database
from millrace_client.journal.sqlite.journal import SqliteJournal
from millrace_client.journal.sqlite.overview import SqliteOverview
from millrace_client.journal.sqlite.targets import SqliteTargets


def payloads(session: JournalSession, database: Database) -> SqliteJournal:
    journal = SqliteJournal(database, session.awaited(SqliteTargets(database).known()))
    journal.decide(session.config.families)
    return journal


@contextmanager
def working(session: JournalSession, what: str) -> Iterator[tuple[Database, Callable[[int], None]]]:
    """The journal, with nobody else draining it, and a bar that moves."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with drain_lock(session.config.lock_path), session.database() as database:
        total = SqliteOverview(database).journal().retained
        with Progress(*columns, console=err, transient=True) as progress:
            task = progress.add_task(what, total=total)
            yield database, lambda count: progress.advance(task, count)


def tell(done: Collected, what: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"events": done.events, "bytes": done.size, "files": list(done.files)}))
        return
    out.print(f"{done.events} payloads, {done.size / 1024 / 1024:.1f} MiB, {what}.")
    for file in done.files:
        out.print(file, markup=False)
