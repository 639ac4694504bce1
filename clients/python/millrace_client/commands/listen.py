"""`millrace listen`: events forwarded to a developer's local server, signed like a webhook."""

from __future__ import annotations

import asyncio
import secrets as randomness
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from millrace.delivery.domain import signing
from millrace.ledger.domain.errors import BadRequest
from millrace_client.commands.forwarder import Forwarder, ForwardLog, Listened
from millrace_client.commands.hub_command import HubCall
from millrace_client.commands.output import err
from millrace_client.errors import Usage
from millrace_client.home import default_home
from millrace_client.sync.forwarding import Forwarding
from millrace_client.sync.settings import Settings
from millrace_client.sync.store import Store

HELP = """Forward the events of a project, session or stream to an HTTP server on your machine.

Each event is one POST, with the body and the Standard Webhooks signature that a hub's webhook has. It is sent again
until your server answers 2xx; the next event waits. The place is kept in a file, and the next call goes on there."""
EXAMPLES = (
    "millrace listen --project demo --forward-to http://127.0.0.1:3000/hook --count 1",
    "millrace listen --session call-7 --forward-to http://127.0.0.1:3000/hook --count 1",
    "millrace listen --stream pi-7/main --forward-to http://127.0.0.1:3000/hook --count 1",
)


def listen(
    call: HubCall,
    forward_to: Annotated[str, typer.Option(help="Your server: http://127.0.0.1:3000/hook.")],
    project: Annotated[str | None, typer.Option(help="Forward this project's events.")] = None,
    partition: Annotated[list[str] | None, typer.Option(help="Only of this partition; may be repeated.")] = None,
    session: Annotated[str | None, typer.Option(help="Forward this session's events.")] = None,
    stream: Annotated[str | None, typer.Option(help="Forward this stream's events: runtime_id/stream_id.")] = None,
    since: Annotated[
        int, typer.Option(min=0, help="Start after this position, unless an earlier call left a place.")
    ] = 0,
    secret: Annotated[
        str | None, typer.Option(envvar="MILLRACE_WEBHOOK_SECRET", help="Sign with this; default: one made and kept.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=0, help="Give an event up after so many tries and go on; 0: never.")] = 0,
    store: Annotated[
        Path | None, typer.Option(help="The file that remembers the place; default: listen.db in --home.")
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many events.")] = None,
) -> None:
    if not forward_to.startswith(("http://", "https://")):
        raise Usage(f"--forward-to {forward_to} is not an address: it starts with http:// or https://.")
    what = Listened.of(project, partition, session, stream)
    hub = call.websocket()
    folder = _made(call.asked.home or default_home())
    key = _checked(secret) if secret else _kept_secret(folder)
    log = ForwardLog(call.as_json)
    err.print(f"Forwarding {what.name} to {forward_to}.", markup=False)
    err.print(f"Signed with {key}", markup=False)
    with Store(store or folder / "listen.db") as kept:
        cursor = kept.cursor(hub.url, what.name, f"listen {forward_to}", since)
        if not cursor.is_new:
            err.print(f"Going on after position {cursor.position}.")
        forwarding = Forwarding(forward_to, key, log, attempts, Settings(sleep=call.world.nap))
        forwarder = Forwarder(hub, what, cursor, forwarding, count)
        with suppress(KeyboardInterrupt):
            asyncio.run(forwarder.run())
    given_up = f", {log.given_up} given up" if log.given_up else ""
    place = f"Stopped after position {cursor.position}: {log.accepted} accepted{given_up}."
    err.print(f"{place} The next call goes on there.")


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Usage(f"Cannot keep the place in {folder}: {error}. Name another folder with --home.") from error
    return folder


def _checked(secret: str) -> str:
    try:
        signing.key(secret)
    except BadRequest as error:
        raise Usage(f"--secret: {error.message}") from error
    return secret


def _kept_secret(folder: Path) -> str:
    """The same each time, so that a server's settings stay right."""
    file = folder / "listen.secret"
    try:
        if file.is_file():
            return _checked(file.read_text().strip())
        made = signing.new_secret(randomness.token_bytes(24))
        file.touch(mode=0o600)
        file.write_text(made + "\n")
    except OSError as error:
        raise Usage(f"Cannot keep a secret in {file}: {error}. Give one with --secret.") from error
    return made
