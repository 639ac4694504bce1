"""Where a hub's WebSocket is: named, told by the hub, or known of the local stack."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from millrace_client import local_stack
from millrace_client.commands.connection import Asked, ChosenHub, World
from millrace_client.commands.output import err
from millrace_client.errors import NoHub, Usage
from millrace_client.sync.settings import Status

WS_VARIABLE = "MILLRACE_WS_URL"
WsUrl = Annotated[str | None, typer.Option("--ws-url", help="The hub's WebSocket; default: where the hub says it is.")]
STYLES = {"live": "green", "waiting": "yellow", "pruned": "yellow", "resync": "yellow"}


def show_status(status: Status) -> None:
    text = f"{status.state}: {status.detail}" if status.detail else status.state
    err.print(text, style=STYLES.get(status.state, "dim"), markup=False)


def websocket_of(world: World, asked: Asked, ws_url: str | None) -> ChosenHub:
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
