"""`millrace sync gc`, `archive` and `retry`: what an operator does with what was delivered, and with what was not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from millrace.delivery.application.retry_delivery import Retry
from millrace_client.commands.journal_options import DryRun, Home, plainly, session_of
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err, out
from millrace_client.errors import Usage
from millrace_client.journal.archive_file import ArchiveFolder
from millrace_client.journal.collect import Archive, Collected, Gc
from millrace_client.journal.lock import drain_lock
from millrace_client.journal.session import Session
from millrace_client.journal.sqlite.database import Database
from millrace_client.journal.sqlite.journal import SqliteJournal
from millrace_client.journal.sqlite.ledger import SqliteLedger
from millrace_client.journal.sqlite.overview import SqliteOverview
from millrace_client.journal.sqlite.targets import SqliteTargets


@plainly
def gc(ctx: typer.Context, dry_run: DryRun = False, home: Home = None, as_json: JsonOutput = False) -> None:
    """
    Drop the payloads that every known target has. What is known about the events stays.

    Examples:

      millrace sync gc --dry-run

      millrace sync gc
    """
    session = session_of(ctx, home, None, lenient=True)
    with _working(session, "removing") as (database, advance):
        done = Gc(_payloads(session, database), session.around.clock, advance)(dry_run=dry_run)
    _tell(done, "would be removed" if dry_run else "removed", as_json)


@plainly
def archive(
    ctx: typer.Context,
    to: Annotated[Path | None, typer.Option(help="The folder; default: archive in the home folder.")] = None,
    older: Annotated[str | None, typer.Option("--older-than", help="Only what is older: 12h, 30d.")] = None,
    dry_run: DryRun = False,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Move payloads that nobody waits for into files: delivered everywhere, or wanted by no target.

    A file is read back and compared before anything is removed from the journal.

    Examples:

      millrace sync archive --older-than 30d

      millrace sync archive --to /backup/events
    """
    session = session_of(ctx, home, None, lenient=True)
    before = None if older is None else session.around.clock() - _ms(older)
    folder = ArchiveFolder(to or session.config.home / "archive")
    with _working(session, "archiving") as (database, advance):
        run = Archive(_payloads(session, database), folder, session.around.clock, advance)
        done = run(before_ms=before, dry_run=dry_run)
    _tell(done, "would be archived" if dry_run else "archived", as_json)


@plainly
def retry(
    ctx: typer.Context,
    event_id: Annotated[str | None, typer.Argument(help="The event; leave it out with --all.")] = None,
    target: Annotated[str | None, typer.Option(help="At which target; may be left out if there is one only.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Everything that was given up there.")] = False,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Let the next drain try a delivery again that was given up, or that waits.

    Examples:

      millrace sync retry order-17-paid --target audit

      millrace sync retry --all --target audit
    """
    if (event_id is None) != every:
        raise Usage("Name an event, or say --all.")
    session = session_of(ctx, home, None, lenient=True)
    with session.database() as database:
        where = _target(SqliteTargets(database), target)
        run = Retry(SqliteLedger(database), SqliteJournal(database), session.around.clock)
        count = run.all_terminal(where) if event_id is None else _one(run, where, event_id)
    if as_json:
        print(json.dumps({"target": where, "retried": count}))
    else:
        out.print(f"{count} to be tried again at {where}; `millrace sync now` does it.", markup=False)


def _payloads(session: Session, database: Database) -> SqliteJournal:
    journal = SqliteJournal(database, session.awaited(SqliteTargets(database).known()))
    journal.decide(session.config.families)
    return journal


def _one(run: Retry, target_id: str, event_id: str) -> int:
    run(target_id, event_id)
    return 1


def _target(known: SqliteTargets, named: str | None) -> str:
    ids = [one.id for one in known.known()]
    if named is not None:
        if named not in ids:
            raise Usage(f"The journal knows no target {named}. Known: {', '.join(ids) or 'none'}.")
        return named
    if len(ids) != 1:
        raise Usage(f"Say which --target. Known: {', '.join(ids) or 'none'}.")
    return ids[0]


@contextmanager
def _working(session: Session, what: str) -> Iterator[tuple[Database, Callable[[int], None]]]:
    """The journal, with nobody else draining it, and a bar that moves."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with drain_lock(session.config.lock_path), session.database() as database:
        total = SqliteOverview(database).journal().retained
        with Progress(*columns, console=err, transient=True) as progress:
            task = progress.add_task(what, total=total)
            yield database, lambda count: progress.advance(task, count)


def _tell(done: Collected, what: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"events": done.events, "bytes": done.size, "files": list(done.files)}))
        return
    out.print(f"{done.events} payloads, {done.size / 1024 / 1024:.1f} MiB, {what}.")
    for file in done.files:
        out.print(file, markup=False)


def _ms(age: str) -> int:
    match = re.fullmatch(r"([1-9]\d{0,6})([smhd])", age)
    if match is None:
        raise Usage(f"{age} is not a duration; write it as 90s, 30m, 12h or 7d.")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] * 1000
