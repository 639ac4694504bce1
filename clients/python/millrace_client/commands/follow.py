"""`millrace follow`: print events as they are committed."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from millrace_client.commands.connection import Asked
from millrace_client.commands.journal_options import Home, Override
from millrace_client.commands.options import JsonOutput, Project, Token, Url
from millrace_client.commands.output import err, out
from millrace_client.commands.websocket import WsUrl, show_status, websocket_of
from millrace_client.sync.live import Live


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to follow, and how much of it."""

    partitions: list[str] | None
    since: int
    count: int | None
    resync: bool
    as_json: bool


def follow(
    ctx: typer.Context,
    project: Project,
    partition: Annotated[
        list[str] | None, typer.Option(help="A partition to follow; may be repeated. None: the whole project.")
    ] = None,
    since: Annotated[
        int, typer.Option(min=0, help="Start after this position, unless the store knows a later start.")
    ] = 0,
    store: Annotated[
        Path | None, typer.Option(help="A file that remembers how far you have read, and lets you go on from there.")
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many events.")] = None,
    resync: Annotated[
        bool, typer.Option("--resync", help="If the hub is behind the store, read everything again.")
    ] = False,
    url: Url = None,
    ws_url: WsUrl = None,
    override: Override = False,
    token: Token = None,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """
    Print what was committed and then what is being committed, in order, until Ctrl-C; with --json one a line.

    Examples:

    \b
      millrace follow --project demo --partition orders --count 1
    """
    hub = websocket_of(ctx.obj, Asked(url, token, override, home), ws_url)
    live = Live(hub.url, project, hub.token or hub.bearer(project), store=store or ":memory:", on_status=show_status)
    seen: list[int] = []
    with suppress(KeyboardInterrupt):
        asyncio.run(_follow(live, Wanted(partition, since, count, resync, as_json), seen))
    err.print(f"Stopped after position {seen[-1]}." if seen else "Stopped.")


async def _follow(live: Live, wanted: Wanted, seen: list[int]) -> None:
    """`seen` holds the last position, for whoever interrupts this."""
    async with live:
        events = live.follow(
            wanted.partitions,
            since=wanted.since,
            most=wanted.count,
            on_future_cursor="resync" if wanted.resync else "raise",
            on_pruned="continue",
        )
        async with aclosing(events):
            async for event in events:
                _show(event, wanted.as_json)
                seen[:] = [int(event["committed_id"])]


def _show(event: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(event, ensure_ascii=False), flush=True)
        return
    content = event["event"]
    line = Text.assemble(
        (f"{event['committed_id']:>8}", "bold"),
        "  ",
        (str(content.get("type")), "cyan"),
        "  ",
        (", ".join(event["partitions"]), "magenta"),
        "  ",
        json.dumps(content.get("payload"), ensure_ascii=False),
        "  ",
        (f"{event.get('client_id') or ''} {event['id']}".strip(), "dim"),
    )
    out.print(line, soft_wrap=True)
