"""`millrace quarantine`: what compaction set aside. It works on the store itself, with the caller's AWS credentials."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from millrace.lake.application.quarantine import Entry, ListQuarantine, Redrive, ShowQuarantined
from millrace_client.commands.files import json_lines
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err, out, print_fields
from millrace_client.errors import Usage
from millrace_operator.store_access import Store, open_store, translated

app = typer.Typer(
    help="List, show, repair and re-drive events that compaction set aside.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Id = Annotated[str, typer.Argument(help="The id that `list` shows.")]


@app.command("list")
def list_entries(
    store: Store = None,
    reason: Annotated[str | None, typer.Option(help="Only entries with this reason.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Also those that were driven again.")] = False,
    as_json: JsonOutput = False,
) -> None:
    """List what waits, with its reason and origin; with --json one entry a line, without its content."""
    with translated():
        found = [one for one in ListQuarantine(open_store(store))() if _wanted(one, reason, every=every)]
    if as_json:
        for entry in found:
            print(json.dumps(_without_line(entry)))
        return
    for entry in found:
        print_fields(_fields(entry))
        out.print()
    err.print(f"{len(found)} in quarantine.")


@app.command()
def show(
    id_: Id,
    store: Store = None,
    line: Annotated[bool, typer.Option("--line", help="Print the line alone, to edit and repair it.")] = False,
) -> None:
    """Print an entry with its content as JSON."""
    with translated():
        entry = ShowQuarantined(open_store(store))(id_)
    print((entry.line or "") if line else json.dumps({**_without_line(entry), "line": entry.line}, ensure_ascii=False))


@app.command()
def redrive(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids that `list` shows.")] = None,
    reason: Annotated[str | None, typer.Option(help="All that wait with this reason.")] = None,
    store: Store = None,
    as_json: JsonOutput = False,
) -> None:
    """Put events into the archive again as they are, for instance after their version was registered."""
    if bool(ids) == (reason is not None):
        raise Usage("Name ids or a --reason.")
    with translated():
        objects = open_store(store)
        chosen = ids or [one.id for one in ListQuarantine(objects)() if _wanted(one, reason, every=False)]
        _print(Redrive(objects)(chosen), as_json)


@app.command()
def repair(
    id_: Id,
    file: Annotated[Path, typer.Option(help="The repaired line, or lines of an object that could not be read.")],
    store: Store = None,
    as_json: JsonOutput = False,
) -> None:
    """Put repaired lines into the archive in place of a quarantined line or object."""
    with translated():
        _print(Redrive(open_store(store))([id_], {id_: json_lines(file)}), as_json)


def _fields(entry: Entry) -> list[tuple[str, object]]:
    """An entry as a block of lines: six columns do not fit into a terminal, and an id is there to be copied whole."""
    event = " v".join(str(part) for part in (entry.event_type, entry.event_version) if part is not None)
    position = "" if entry.sequence_position is None else f", position {entry.sequence_position}"
    return [
        ("id", entry.id),
        ("reason", f"{entry.reason}: {entry.field}" if entry.field else entry.reason),
        ("event", event),
        ("ledger", f"{entry.ledger}{position}" if entry.ledger else None),
        ("object", entry.object),
    ]


def _wanted(entry: Entry, reason: str | None, *, every: bool) -> bool:
    return reason in (None, entry.reason) and (every or entry.redriven is None)


def _without_line(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in asdict(entry).items() if value is not None and name != "line"}


def _print(done: dict[str, str], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"redriven": done}))
    else:
        for id_, name in done.items():
            out.print(escape(f"{id_} → {name}"))
        err.print(f"{len(done)} driven again; the next compaction takes them up.")
