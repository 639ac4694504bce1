"""`millrace sync archive`: move payloads that nobody waits for into files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from millrace_client.commands.journal_options import DryRun, Home, plainly, session_of
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.sync.freeing import payloads, tell, working
from millrace_client.errors import Usage
from millrace_client.journal.archive_file import ArchiveFolder
from millrace_client.journal.collect import Archive


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
    with working(session, "archiving") as (database, advance):
        run = Archive(payloads(session, database), folder, session.around.clock, advance)
        done = run(before_ms=before, dry_run=dry_run)
    tell(done, "would be archived" if dry_run else "archived", as_json)


def _ms(age: str) -> int:
    match = re.fullmatch(r"([1-9]\d{0,6})([smhd])", age)
    if match is None:
        raise Usage(f"{age} is not a duration; write it as 90s, 30m, 12h or 7d.")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] * 1000
