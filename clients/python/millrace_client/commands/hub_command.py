"""What every command that talks to a hub shares: its options, and the clients that it opens."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import httpx
import typer

from millrace_client.commands.connection import REFUSALS, Asked, ChosenHub, World
from millrace_client.commands.journal_options import Home, Override
from millrace_client.commands.options import JsonOutput, Token, Url
from millrace_client.commands.websocket import WsUrl, websocket_of
from millrace_client.operator.hub import Operator
from millrace_client.streams.runtime import Runtime
from millrace_client.sync.http import Client
from millrace_client.sync.settings import Settings

Opened = TypeVar("Opened", bound=Client)

FIRST_PAUSE = 0.3
"""Seconds. With `REFUSALS`, somebody at a terminal waits less than a second for a hub that is not there."""


@dataclass(frozen=True, slots=True)
class HubCall:
    """One call of a command: which hub is meant, and how to print."""

    world: World
    asked: Asked
    as_json: bool
    ws_url: str | None = None

    def open(self, kind: type[Opened], *projects: str) -> Opened:
        """A client with the token that was given, or for the local hub with one that opens these projects."""
        hub = self.world.hub(self.asked)
        return kind(
            hub.url,
            hub.everything(*projects)(),
            refusals=REFUSALS,
            transport=self.world.transport,
            sleep=self.world.sleep,
        )

    def operator(self, contract: str = "", scope: str = "") -> Operator:
        """For all of the hub, or for one ledger of it."""
        return self.operator_of(*([scope] if contract == "sync" and scope else []))

    def operator_of(self, *projects: str) -> Operator:
        return self.open(Operator, *projects)

    def runtime(self, runtime_id: str) -> Runtime:
        hub = self.world.hub(self.asked)
        transport: object = self.world.transport  # a test's is both
        asynchronous = transport if isinstance(transport, httpx.AsyncBaseTransport) else None
        return Runtime(
            hub.url,
            runtime_id,
            hub.everything(),
            refusals=REFUSALS,
            settings=Settings(first_pause=FIRST_PAUSE, sleep=self.world.nap),
            transport=asynchronous,
        )

    def websocket(self) -> ChosenHub:
        """The hub, with its WebSocket's address for its own."""
        return websocket_of(self.world, self.asked, self.ws_url)


_SHARED: tuple[tuple[str, Any, Any], ...] = (
    ("url", Url, None),
    ("override", Override, False),
    ("token", Token, None),
    ("home", Home, None),
    ("as_json", JsonOutput, False),
)


def on_hub(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes a `HubCall` first, and beside its own options those that say which hub is meant."""
    return _with_options(command, _SHARED)


def on_websocket(command: Callable[..., None]) -> Callable[..., None]:
    """The same for commands that follow something live: they take `--ws-url` too."""
    return _with_options(command, (*_SHARED, ("ws_url", WsUrl, None)))


def _with_options(command: Callable[..., None], shared: tuple[tuple[str, Any, Any], ...]) -> Callable[..., None]:
    def run(**given: Any) -> None:
        world: World = given.pop("ctx").obj
        chosen = {name: given.pop(name) for name, _, _ in shared}
        home: Path | None = chosen["home"]
        asked = Asked(chosen["url"], chosen["token"], chosen["override"], home)
        command(HubCall(world, asked, chosen["as_json"], chosen.get("ws_url")), **given)

    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    only = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, only, default=default, annotation=kind) for name, kind, default in shared]
    context = inspect.Parameter("ctx", only, annotation=typer.Context)
    parameters = [context, *(one.replace(kind=only) for one in own), *added]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


Limit = Annotated[int | None, typer.Option("--count", min=1, help="End after so many.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Contract = Annotated[str, typer.Argument(help="sync, realtime, streams, catalog or delivery.")]
Scope = Annotated[str, typer.Argument(help="The project, session, runtime_id:stream_id, domain or team.")]
