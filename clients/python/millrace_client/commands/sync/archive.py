"""`millrace sync archive`: move payloads that nobody waits for into files, and back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from millrace_client.commands.journal_options import DryRun, Home, plainly, session_of
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.sync.freeing import payloads, tell, together, working
from millrace_client.errors import Usage
from millrace_client.journal.archive_file import ArchiveFolder
from millrace_client.journal.collect import Archive, Collected
from millrace_client.journal.restore import Restore
from millrace_client.journal.session import JournalSession
from millrace_client.journal.sqlite.journal import SqliteJournal


@plainly
def archive(
    ctx: typer.Context,
    to: Annotated[Path | None, typer.Option(help="The folder; default: archive in the home folder.")] = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="Put what was archived back into the journal; the files stay.")
    ] = False,
    older: Annotated[str | None, typer.Option("--older-than", help="Only what is older: 12h, 30d.")] = None,
    dry_run: DryRun = False,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Move payloads that nobody waits for into files: delivered everywhere, or wanted by no target.

    A file is read back and compared before anything is removed from the journal. With --restore the journal has its
    payloads again, and targets that lack them get them; files that were moved are looked for in --to.

    Examples:

      millrace sync archive --older-than 30d

      millrace sync archive --to /backup/events

      millrace sync archive --restore
    """
    if restore and older is not None:
        raise Usage("--older-than does not go with --restore.")
    session = session_of(ctx, home, None, lenient=True)
    before = None if older is None else session.around.clock() - _ms(older)
    folder = ArchiveFolder(to or session.config.home / "archive")
    if restore:
        _restore(session, folder, dry_run=dry_run, as_json=as_json)
        return
    with working(session, "archiving") as (databases, advance):
        done = [
            Archive(payloads(session, one), folder, session.around.clock, advance)(before_ms=before, dry_run=dry_run)
            for one in databases
        ]
    tell(together(done), "would be archived" if dry_run else "archived", as_json)


def _restore(session: JournalSession, folder: ArchiveFolder, *, dry_run: bool, as_json: bool) -> None:
    with working(session, "restoring") as (databases, advance):
        journals = [SqliteJournal(one) for one in databases]
        done = [Restore(journal, folder, session.around.clock, advance)(dry_run=dry_run) for journal in journals]
    problems = {file: why for one in done for file, why in one.problems.items()}
    collected = together([Collected(one.events, one.size, one.files) for one in done])
    tell(collected, "would be restored" if dry_run else "restored", as_json, problems)
    if problems:
        raise typer.Exit(1)


def _ms(age: str) -> int:
    match = re.fullmatch(r"([1-9]\d{0,6})([smhd])", age)
    if match is None:
        raise Usage(f"{age} is not a duration; write it as 90s, 30m, 12h or 7d.")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] * 1000
