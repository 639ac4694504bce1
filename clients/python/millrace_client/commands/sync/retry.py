"""`millrace sync retry`: let the next drain try again the deliveries that were given up or that wait."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from millrace.delivery.application.retry_delivery import Retry
from millrace_client.commands.journal_options import Home, plainly, session_of
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import out
from millrace_client.errors import Usage
from millrace_client.journal.sqlite.database import Database
from millrace_client.journal.sqlite.journal import SqliteJournal
from millrace_client.journal.sqlite.ledger import SqliteLedger
from millrace_client.journal.sqlite.targets import SqliteTargets


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
    with session.journals.all() as databases:
        where = _target(databases, target)
        runs = [Retry(SqliteLedger(one), SqliteJournal(one), session.around.clock) for one in databases]
        count = sum(run.all_terminal(where) for run in runs) if event_id is None else _one(runs, where, event_id)
    if as_json:
        print(json.dumps({"target": where, "retried": count}))
    else:
        out.print(f"{count} to be tried again at {where}; `millrace sync now` does it.", markup=False)


def _one(runs: Sequence[Retry], target_id: str, event_id: str) -> int:
    """In whichever journals have it: the same id may be two events of two producers."""
    having = [run for run in runs if run.deliveries.get(target_id, event_id) is not None]
    for run in having or runs[:1]:
        run(target_id, event_id)
    return len(having)


def _target(databases: Sequence[Database], named: str | None) -> str:
    ids = list(dict.fromkeys(one.id for database in databases for one in SqliteTargets(database).known()))
    if named is not None:
        if named not in ids:
            raise Usage(f"No journal knows a target {named}. Known: {', '.join(ids) or 'none'}.")
        return named
    if len(ids) != 1:
        raise Usage(f"Say which --target. Known: {', '.join(ids) or 'none'}.")
    return ids[0]
