"""`millrace tables`: the published tables of a store, as files for other tools. It works on the store itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from millrace.lake.adapters.directory_objects import DirectoryObjects
from millrace.lake.application.copy_tables import CopyTables, files_of
from millrace.lake.application.editions import Editions
from millrace.lake.domain.edition import PUBLISHED, Edition
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err, out
from millrace_client.errors import Usage
from millrace_operator.store_access import Store, open_store, translated

app = typer.Typer(
    name="tables", help="Copy the tables of a hub.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


@app.callback()
def root() -> None:
    """Copy the tables of a hub, with access to its bucket."""


@app.command()
def copy(
    directory: Annotated[Path, typer.Argument(help="A folder for the copy alone; it is made if it is not there.")],
    store: Store = None,
    as_json: JsonOutput = False,
) -> None:
    """Copy the tables as they are now; called again, it fetches only what is new.

    Example: millrace tables copy ./tables
    """
    if directory.exists() and not directory.is_dir():
        raise Usage(f"{directory} is no folder.")
    with translated():
        edition = copied(store, directory)
    if as_json:
        rows = {table: edition.rows(table) for table in PUBLISHED}
        print(json.dumps({"edition": edition.number, "run": edition.run, "rows": rows}))
    elif edition.number == 0:
        err.print("There are no tables yet: `make compact` makes them.", style="yellow")
    else:
        for table in PUBLISHED:
            out.print(f"{table}: {edition.rows(table)} rows", markup=False)
        err.print(f"Edition {edition.number} is in {directory}.", markup=False)


def copied(store: str | None, directory: Path) -> Edition:
    """Shows how far it is, if somebody watches."""
    source = open_store(store)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=err, transient=True
    ) as progress:
        size = sum(file.size for file in files_of(Editions(source).current().edition))
        bar = progress.add_task("tables", total=size)
        return CopyTables(source, DirectoryObjects(directory), lambda done: progress.advance(bar, done))()
