"""`millrace pull`: read events by position, page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from millrace_client.commands.connection import World
from millrace_client.commands.options import JsonOutput, Project, Token, Url
from millrace_client.commands.output import err, out


def pull(
    ctx: typer.Context,
    project: Project,
    partition: Annotated[
        list[str] | None, typer.Option(help="A partition to read; may be repeated. None: the whole project.")
    ] = None,
    since: Annotated[int, typer.Option(min=0, help="Read what was committed after this position.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Events in a page; the hub takes 50 to 1000.")] = None,
    every_page: Annotated[bool, typer.Option("--all", "--follow-pages", help="Read on until the end.")] = False,
    url: Url = None,
    token: Token = None,
    as_json: JsonOutput = False,
) -> None:
    """Print events in order; with --json one a line. Where to go on from is said on standard error."""
    world: World = ctx.obj
    with world.connect(url, token, project) as hub:
        pages = hub.pages(project, partition, since, limit)
        _print(pages if every_page else islice(pages, 1), as_json)


def _print(pages: Iterator[dict[str, Any]], as_json: bool) -> None:
    page: dict[str, Any] = {}
    for page in pages:
        if as_json:
            for event in page["events"]:
                print(json.dumps(event, ensure_ascii=False))
        elif page["events"]:
            out.print(_table(page["events"]))
    if "pruned_through_committed_id" in page:
        err.print(f"Events up to {page['pruned_through_committed_id']} are no longer kept.", style="yellow")
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
