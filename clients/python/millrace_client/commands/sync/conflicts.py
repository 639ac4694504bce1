"""`millrace sync conflicts`: both contents of a migration's conflicts, side by side, before one decides (D10)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from millrace_client.commands.journal_options import Home, JournalProblem, plainly, session_of
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err, out
from millrace_client.journal.migration_ports import TwoContents
from millrace_client.journal.routed_imports import routed_imports

GONE = "(the journal has no such event any more)"


@plainly
def conflicts(
    ctx: typer.Context,
    event_id: Annotated[str | None, typer.Argument(help="Show this event's, the settled ones too.")] = None,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Show what the journal and an old queue or journal have under the same id. Nothing is changed.

    Examples:

      millrace sync conflicts

      millrace sync conflicts order-17-paid
    """
    session = session_of(ctx, home, None, lenient=True)
    with routed_imports(session) as imports:
        names = [event_id] if event_id else list(dict.fromkeys(one.event_id for one in imports.conflicts()))
        found = [one for name in names for one in imports.compare(name)]
    if event_id is not None and not found:
        raise JournalProblem(f"{event_id} has no migration conflict.")
    if as_json:
        print(json.dumps({"conflicts": [_as_json(one) for one in found]}))
    else:
        _show(found)


def _as_json(one: TwoContents) -> dict[str, Any]:
    """Contents as text, in which bytes that are no UTF-8 are escaped."""
    return {
        "event_id": one.conflict.event_id,
        "source": one.conflict.source,
        "reason": one.conflict.reason,
        "found_ms": one.conflict.found_ms,
        "kept": one.conflict.resolved or None,
        "journal_content": None if one.journal is None else _text(one.journal),
        "source_content": _text(one.source),
    }


def _show(found: Sequence[TwoContents]) -> None:
    if not found:
        out.print("There are no open conflicts.")
    for one in found:
        conflict = one.conflict
        state = f"settled, the {conflict.resolved}'s was kept" if conflict.resolved else "open"
        out.print(f"{conflict.event_id}: {conflict.reason} ({state})", markup=False)
        table = Table(Column("journal", overflow="fold"), Column(escape(conflict.source), overflow="fold"))
        table.add_row(escape(GONE if one.journal is None else _text(one.journal)), escape(_text(one.source)))
        out.print(table)
    if any(not one.conflict.resolved for one in found):
        err.print("Settle one with `millrace sync migrate --resolve EVENT --keep journal|source`.")


def _text(content: bytes) -> str:
    return content.decode("utf-8", "backslashreplace")
