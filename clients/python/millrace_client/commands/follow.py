"""`millrace follow`: print events as they are committed."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from millrace_client import local_stack
from millrace_client.commands.connection import Asked, ChosenHub, World
from millrace_client.commands.journal_options import Home, Override
from millrace_client.commands.options import JsonOutput, Project, Token, Url
from millrace_client.commands.output import err, out
from millrace_client.errors import NoHub, Usage
from millrace_client.sync.live import Live
from millrace_client.sync.settings import Status

WS_VARIABLE = "MILLRACE_WS_URL"
STYLES = {"live": "green", "waiting": "yellow", "pruned": "yellow", "resync": "yellow"}


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
    ws_url: Annotated[
        str | None, typer.Option("--ws-url", help="The hub's WebSocket; default: where the hub says it is.")
    ] = None,
    override: Override = False,
    token: Token = None,
    home: Home = None,
    as_json: JsonOutput = False,
) -> None:
    """Print what was committed and then what is being committed, in order, until Ctrl-C; with --json one a line."""
    hub = _hub(ctx.obj, Asked(url, token, override, home), ws_url)
    live = Live(hub.url, project, hub.token or hub.bearer(project), store=store or ":memory:", on_status=_show_status)
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


def _show_status(status: Status) -> None:
    text = f"{status.state}: {status.detail}" if status.detail else status.state
    err.print(text, style=STYLES.get(status.state, "dim"), markup=False)


def _hub(world: World, asked: Asked, ws_url: str | None) -> ChosenHub:
    """The hub of this call, with its WebSocket's address for its own. Raises `Usage`."""
    if ws_url is not None:
        return _at(ws_url, asked)
    in_environment = world.around.environment.get(WS_VARIABLE) or None
    if in_environment is not None and world.resolved(asked).resolved_server_url is None:
        return _at(in_environment, asked)
    hub = world.hub(asked)
    told = hub.stack.websocket_url if hub.stack else _told_by(world, hub.url)
    if told is not None and in_environment is not None and not _same(told, in_environment):
        raise Usage(
            f"{WS_VARIABLE} is {in_environment}, but the WebSocket of {hub.url} is {told}. Unset it, or say with "
            "--ws-url which one is meant."
        )
    address = told or in_environment
    if address is None:
        raise NoHub(f"{hub.url} does not say where its WebSocket is: name it with --ws-url.")
    return replace(hub, url=address)


def _at(ws_url: str, asked: Asked) -> ChosenHub:
    """Whoever names the WebSocket alone needs a token, unless it is that of the local hub."""
    stack = None if asked.token else local_stack.find()
    return ChosenHub(ws_url, asked.token, stack if stack and _same(stack.websocket_url or "", ws_url) else None)


def _told_by(world: World, url: str) -> str | None:
    with world.client(url) as client:
        told = client.health().get("websocket_url")
    return told if isinstance(told, str) and told else None


def _same(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")
