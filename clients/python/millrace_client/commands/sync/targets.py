"""`millrace sync targets`: the targets the journal knows, and how each is treated."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from millrace.delivery.domain.signing import new_secret
from millrace_client.commands.journal_options import Home, JournalProblem, Token, plainly, session_of
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import out
from millrace_client.errors import Usage
from millrace_client.journal.sqlite.targets import SqliteTargets


@plainly
def targets(
    ctx: typer.Context,
    pause: Annotated[str | None, typer.Option(help="Send nothing to this target until it is resumed.")] = None,
    resume: Annotated[str | None, typer.Option(help="Send to this target again, whatever paused it.")] = None,
    forget: Annotated[
        str | None, typer.Option(help="No longer wait for this target in gc; what it was sent stays on record.")
    ] = None,
    make_secret: Annotated[bool, typer.Option("--new-secret", help="Print a new signing secret.")] = False,
    token: Token = None,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    List the targets the journals know, or change how one is treated.

    Examples:

      millrace sync targets

      millrace sync targets --pause audit

      millrace sync targets --new-secret
    """
    if make_secret:
        print(new_secret(secrets.token_bytes(32)))
        return
    session = session_of(ctx, home, token, lenient=True)
    with session.journals.all() as databases:
        journals = [SqliteTargets(database) for database in databases]
        for target_id, why in ((pause, "paused by hand"), (resume, "")):
            if target_id is not None:
                for known in _knowing(journals, target_id):
                    known.pause(target_id, why)
        if forget is not None and not sum(known.forget(forget, session.around.clock()) for known in journals):
            raise Usage(f"No journal knows a target {forget}.")
        listed = list({one.id: (one, known.get(one.id)) for known in journals for one in known.known()}.values())
    if as_json:
        shown = [
            {"id": one.id, "type": one.kind, "url": one.url, "unsigned": one.id in session.unsigned}
            for one, _ in listed
        ]
        print(json.dumps({"targets": shown}))
        return
    table = Table(Column("id", overflow="fold"), "type", Column("url", overflow="fold"), "state")
    for one, state in listed:
        condition = "paused" if state.paused_why else state.blocked or "ready"
        condition += ", unsigned" if one.id in session.unsigned else ""
        table.add_row(*map(escape, (one.id, one.kind, one.url, condition)))
    out.print(table)


def _knowing(journals: Sequence[SqliteTargets], target_id: str) -> list[SqliteTargets]:
    knowing = [known for known in journals if any(one.id == target_id for one in known.known())]
    if not knowing:
        raise JournalProblem(f"No journal knows a target {target_id}.")
    return knowing
