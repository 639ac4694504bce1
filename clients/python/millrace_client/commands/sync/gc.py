"""`millrace sync gc`: drop the payloads that every known target has."""

from __future__ import annotations

import typer

from millrace_client.commands.journal_options import DryRun, Home, plainly, session_of
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.sync.freeing import payloads, tell, together, working
from millrace_client.journal.collect import Gc


@plainly
def gc(ctx: typer.Context, dry_run: DryRun = False, home: Home = None, as_json: JsonOutput = False) -> None:
    """
    Drop the payloads that every known target has, in all journals. What is known about the events stays.

    Examples:

      millrace sync gc --dry-run

      millrace sync gc
    """
    session = session_of(ctx, home, None, lenient=True)
    with working(session, "removing") as (databases, advance):
        done = [Gc(payloads(session, one), session.around.clock, advance)(dry_run=dry_run) for one in databases]
    tell(together(done), "would be removed" if dry_run else "removed", as_json)
