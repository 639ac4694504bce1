"""`millrace audit`: what operators did, when, and with which outcome."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from millrace_client.commands.hub_command import HubCall
from millrace_client.commands.output import err, print_json, print_table, utc
from millrace_client.operator.audit import AuditEntry

HELP = "List what operators did, the newest first. Needs the role operator."
EXAMPLES = ("millrace audit --count 10", "millrace audit --action target_put", "millrace audit --client ops")
KNOWN = {"position", "ts_ms", "who", "action", "action_id", "outcome"}


def audit(
    call: HubCall,
    action: Annotated[str | None, typer.Option(help="Only this action.")] = None,
    client: Annotated[str | None, typer.Option(help="Only what this client did.")] = None,
    since_ms: Annotated[int | None, typer.Option(help="Only entries of this time or later.")] = None,
    count: Annotated[int, typer.Option(min=1, help="End after so many.")] = 30,
) -> None:
    with call.operator() as hub:
        entries = list(islice(hub.audit.newest(action=action, client=client, since_ms=since_ms), count))
    if call.as_json:
        for entry in entries:
            print_json(dict(entry.fields))
    elif not print_table(
        ("time (UTC)", "who", "action", "outcome", "of"), map(_row, entries), whole=("action", "outcome")
    ):
        err.print("No entries.")


def _row(entry: AuditEntry) -> tuple[object, ...]:
    rest = ", ".join(f"{name} {value}" for name, value in entry.fields.items() if name not in KNOWN)
    return utc(entry.ts_ms), entry.who, entry.action, entry.outcome, rest
