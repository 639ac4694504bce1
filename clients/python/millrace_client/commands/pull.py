"""`millrace pull`: read events by position, page by page."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from millrace_client.commands.connection import Asked, World
from millrace_client.commands.journal_options import Home, Override
from millrace_client.commands.options import JsonOutput, Project, Token, Url
from millrace_client.commands.output import err, out
from millrace_client.sync.store import Store


def pull(
    ctx: typer.Context,
    project: Project,
    partition: Annotated[
        list[str] | None, typer.Option(help="A partition to read; may be repeated. None: the whole project.")
    ] = None,
    since: Annotated[
        int, typer.Option(min=0, help="Read what was committed after this position, unless the store knows another.")
    ] = 0,
    store: Annotated[
        Path | None, typer.Option(help="A file that remembers how far you have read, and lets you go on from there.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Events in a page; the hub takes 50 to 1000.")] = None,
    one_page: Annotated[bool, typer.Option("--one-page", help="End after the first page.")] = False,
    every_page: Annotated[bool, typer.Option("--all", "--follow-pages", hidden=True)] = False,
    resync: Annotated[
        bool, typer.Option("--resync", help="If the hub is behind that position, read everything again.")
    ] = False,
    url: Url = None,
    override: Override = False,
    token: Token = None,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Print events in order, up to the newest; with --json one a line. How to go on is said on standard error.

    Examples:

    \b
      millrace pull --project demo --partition orders
    """
    world: World = ctx.obj
    hub = world.hub(Asked(url, token, override, home))
    partitions = sorted(set(partition)) if partition else None
    with ExitStack() as open_:
        cursor = None
        if store is not None:
            kept = open_.enter_context(Store(store))
            cursor = kept.cursor(hub.url, project, json.dumps(partitions), since)
        client = open_.enter_context(world.client(hub.url, hub.bearer(project)()))
        pages = client.pages(
            project,
            partitions,
            cursor.position if cursor else since,
            limit,
            on_future_cursor="resync" if resync else "raise",
        )
        read = islice(pages, 1) if one_page and not every_page else pages
        _print(read, as_json, (lambda position: cursor.apply([], position)) if cursor else lambda _: None)


def _print(pages: Iterable[dict[str, Any]], as_json: bool, done: Callable[[int], None]) -> None:
    """A page is done when all of it is printed; only then its end is remembered."""
    page: dict[str, Any] = {}
    pruned = 0
    for page in pages:
        if as_json:
            for event in page["events"]:
                print(json.dumps(event, ensure_ascii=False))
        elif page["events"]:
            out.print(_table(page["events"]))
        sys.stdout.flush()
        pruned = max(pruned, page.get("pruned_through_committed_id", 0))
        done(page["next_since_committed_id"])
    if pruned:
        err.print(f"Events up to {pruned} are no longer kept.", style="yellow")
    more = "there is more" if page["has_more"] else "that is all"
    err.print(f"Go on with --since {page['next_since_committed_id']}; {more}.")


def _table(events: list[dict[str, Any]]) -> Table:
    names = ("id", "client", "partitions", "type", "payload")
    table = Table(Column("position", no_wrap=True), *(Column(name, overflow="fold") for name in names))
    for event in events:
        content = event["event"]
        payload = json.dumps(content.get("payload"), ensure_ascii=False)
        cells = (
            event["id"],
            event.get("client_id", ""),
            ", ".join(event["partitions"]),
            str(content.get("type")),
            payload,
        )
        table.add_row(str(event["committed_id"]), *map(escape, cells))
    return table
