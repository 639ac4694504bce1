"""`millrace tables`: copy the published tables of a store, and verify what other tools see of them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from millrace.lake.adapters.directory_objects import DirectoryObjects
from millrace.lake.adapters.store import open_objects
from millrace.lake.application.copy_tables import CopyTables, files_of
from millrace.lake.application.editions import Editions
from millrace.lake.application.verify_tables import TableVerdict, VerifyTables
from millrace.lake.domain.edition import DATABASE, PUBLISHED, Edition
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err, out
from millrace_client.errors import Usage
from millrace_operator.store_access import Store, located, open_store, translated

app = typer.Typer(
    name="tables",
    help="Copy and verify the tables of a hub.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def root() -> None:
    """Copy and verify the tables of a hub, with access to its bucket."""


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


@app.command()
def verify(
    store: Store = None,
    database: Annotated[str, typer.Option(help="The catalog's database with the Iceberg tables.")] = DATABASE,
    as_json: JsonOutput = False,
) -> None:
    """Prove that the Iceberg tables have exactly the files and rows that the pointer leads to.

    Example: millrace tables verify
    """
    with translated():
        edition, verdicts = verified(store, database)
    if as_json:
        print(json.dumps({"edition": edition.number, "run": edition.run, "tables": [_told(one) for one in verdicts]}))
    elif edition.number == 0:
        err.print("There are no tables yet: `make compact` makes them.", style="yellow")
    for one in verdicts if not as_json else ():
        state = "equal" if one.equal else "differs" if one.there else "is not in the catalog"
        out.print(f"{one.table}: {one.rows} of {one.expected_rows} rows, {state}", markup=False)
        for name in one.missing:
            out.print(f"  not shown: {name}", markup=False)
        for name in one.extra:
            out.print(f"  shown, but not published: {name}", markup=False)
    if not all(one.equal for one in verdicts):
        err.print("The next run of compaction brings the Iceberg tables forward.", style="yellow")
        raise typer.Exit(1)


def verified(store: str | None, database: str) -> tuple[Edition, list[TableVerdict]]:
    try:
        from millrace.lake.adapters.iceberg_catalog import iceberg_tables  # noqa: PLC0415 - only this needs pyiceberg
    except ModuleNotFoundError as error:
        raise Usage(f"{error.name} is not installed: pip install 'millrace[tables]'.") from error
    address, settings = located(store)
    objects = open_objects(address, **settings)
    with iceberg_tables(address, objects, {}, database, **settings) as tables:
        return VerifyTables(objects, tables)()


def _told(verdict: TableVerdict) -> dict[str, object]:
    return {**asdict(verdict), "equal": verdict.equal}


def copied(store: str | None, directory: Path) -> Edition:
    """Shows how far it is, if somebody watches."""
    source = open_store(store)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=err, transient=True
    ) as progress:
        size = sum(file.size for file in files_of(Editions(source).current().edition))
        bar = progress.add_task("tables", total=size)
        return CopyTables(source, DirectoryObjects(directory), lambda done: progress.advance(bar, done))()
