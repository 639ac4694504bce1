"""`millrace sync audit`: what the journals wrote down about events for ever."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from millrace_client.commands.journal_options import Home, plainly, session_of
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import out
from millrace_client.journal.journals import owner
from millrace_client.journal.sqlite.database import Database


@plainly
def audit(
    ctx: typer.Context,
    subject: Annotated[str | None, typer.Argument(help="Only what is about this event, file or journal.")] = None,
    what: Annotated[str | None, typer.Option(help="Only this kind of entry, for instance opt_out_refused.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The newest so many.")] = 100,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Show the audit trail of all journals, oldest first: opt-outs, retries by hand, settled conflicts, take-overs.

    Examples:

      millrace sync audit

      millrace sync audit order-17-paid --json
    """
    session = session_of(ctx, home, None, lenient=True)
    with session.journals.all() as databases:
        entries = [entry for database in databases for entry in _entries(database, subject, what, limit)]
    newest = sorted(entries, key=lambda entry: entry["at_ms"])[-limit:]
    if as_json:
        print(json.dumps({"entries": newest}))
        return
    table = Table("when", "what", Column("subject", overflow="fold"), Column("detail", overflow="fold"), "producer")
    for entry in newest:
        when = datetime.fromtimestamp(entry["at_ms"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        producer = "/".join(part or "-" for part in (entry["user_id"], entry["team_slug"]))
        table.add_row(*map(escape, (when, entry["what"], entry["subject"], entry["detail"], producer)))
    out.print(table)


def _entries(database: Database, subject: str | None, what: str | None, limit: int) -> list[dict[str, Any]]:
    found = database.connection.execute(
        "SELECT at_ms, what, subject, detail FROM audit WHERE subject = coalesce(?, subject) "
        "AND what = coalesce(?, what) ORDER BY number DESC LIMIT ?",
        (subject, what, limit),
    ).fetchall()
    whose = owner(database)
    return [
        {
            "at_ms": at_ms,
            "what": kind,
            "subject": about,
            "detail": detail,
            "journal": str(database.path),
            "user_id": whose.user_id,
            "team_slug": whose.team_slug,
        }
        for at_ms, kind, about, detail in reversed(found)
    ]
