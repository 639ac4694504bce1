"""`millrace registry`: which versions of which catalog types the tables take. It works on the store itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from millrace.lake.application.registries import put_registry, stored_registry
from millrace_client.commands.files import content
from millrace_client.commands.options import JsonOutput
from millrace_client.commands.output import err
from millrace_operator.store_access import Store, open_store, translated

app = typer.Typer(
    help="Show and set which versions of which catalog types the tables take.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def show(store: Store = None) -> None:
    """Print the registry as it was put."""
    with translated():
        stored = stored_registry(open_store(store))
    if stored is None:
        err.print("There is no registry yet: compaction sets every event of the catalog aside.", style="yellow")
    print(stored.decode() if stored else "{}")


@app.command()
def put(
    file: Annotated[Path, typer.Argument(help="The registry, as JSON.")],
    store: Store = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Check a registry and put it in place of the last one; the next compaction goes by it.

    Example of a file:

      {"types": {"order.placed": {"versions": {"1": {}, "2": {"channel": "web"}}, "policy": "fallback"}}}
    """
    data = content(file)
    with translated():
        known = put_registry(open_store(store), data)
    versions = sum(len(one.versions) for one in known.types.values())
    if as_json:
        print(json.dumps({"types": len(known.types), "versions": versions, "policy": known.policy}))
    else:
        err.print(f"{len(known.types)} types with {versions} versions; what is unknown: {known.policy}.")
        err.print("What waits in quarantine stays there until `millrace quarantine redrive`.")
