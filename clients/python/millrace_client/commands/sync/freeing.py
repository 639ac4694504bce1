"""What `sync gc` and `sync archive` share: the journal while nobody else drains it, a bar, and how they report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
def working(session: JournalSession, what: str) -> Iterator[tuple[Sequence[Database], Callable[[int], None]]]:
    """Every journal of the home folder, with nobody else draining, and a bar that moves."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with drain_lock(session.config.lock_path), session.journals.all() as databases:
        counts = [SqliteOverview(database).journal() for database in databases]
        with Progress(*columns, console=err, transient=True) as progress:
            task = progress.add_task(what, total=sum(one.retained for one in counts))
            yield databases, lambda count: progress.advance(task, count)


def together(parts: Sequence[Collected]) -> Collected:
    files = [file for part in parts for file in part.files]
    return Collected(sum(part.events for part in parts), sum(part.size for part in parts), files)


def tell(done: Collected, what: str, as_json: bool, problems: Mapping[str, str] | None = None) -> None:
    """`problems`: files that could not be read, and why."""
    if as_json:
        shown = {"events": done.events, "bytes": done.size, "files": list(done.files)}
        print(json.dumps(shown if problems is None else shown | {"problems": problems}))
        return
    out.print(f"{done.events} payloads, {done.size / 1024 / 1024:.1f} MiB, {what}.")
    for file in done.files:
        out.print(file, markup=False)
    for file, why in (problems or {}).items():
        err.print(f"{file}: {why}", style="yellow", markup=False)
