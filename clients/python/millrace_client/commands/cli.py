"""The `millrace` command. Exit codes: 0, 1 refused or not all done, 2 usage, 3 unreachable."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated

import typer

from millrace.version import VERSION
from millrace_client.commands import (
    audit,
    catalog,
    console,
    deliveries,
    events,
    grants,
    installed,
    lake,
    ledgers,
    listen,
    markers,
    profiles,
    retention,
    sessions,
    standing,
    streams,
    targets,
)
from millrace_client.commands.capture import capture
from millrace_client.commands.connection import World
from millrace_client.commands.follow import follow
from millrace_client.commands.groups import with_examples
from millrace_client.commands.health import health
from millrace_client.commands.hub_command import on_hub, on_websocket
from millrace_client.commands.output import err
from millrace_client.commands.pull import pull
from millrace_client.commands.stub import stub
from millrace_client.commands.submit import submit
from millrace_client.commands.sync import app as sync
from millrace_client.commands.token import token
from millrace_client.errors import ClientError, Refused

GROUPS = {
    "events": events.app,
    "targets": targets.app,
    "retention": retention.app,
    "profiles": profiles.app,
    "sessions": sessions.app,
    "streams": streams.app,
    "markers": markers.app,
    "grants": grants.app,
    "catalog": catalog.app,
    "lake": lake.app,
    "sync": sync.app,
}


def root(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    if version:
        print(VERSION)
        raise typer.Exit


def command() -> typer.Typer:
    """The client's own commands, and those of the packages that are installed beside it."""
    app = typer.Typer(
        name="millrace",
        help="Talk to a Millrace event hub. Without --url, the one that `make run` started on this machine.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(invoke_without_command=True)(root)
    for one in (submit, pull, follow, capture, stub, token, health):
        app.command()(one)
    _add_doors(app)
    for name, group in GROUPS.items():
        app.add_typer(group, name=name)
    installed.add_commands(app, installed.installed())
    return app


def _add_doors(app: typer.Typer) -> None:
    """The commands of one word that have no others beside them."""
    for door in (ledgers, deliveries, audit, console):
        name = door.__name__.rpartition(".")[2]
        app.command(name, help=with_examples(door.HELP, *door.EXAMPLES))(on_hub(getattr(door, name)))
    app.command("listen", help=with_examples(listen.HELP, *listen.EXAMPLES))(on_websocket(listen.listen))
    app.command(help=with_examples(standing.OVERVIEW, "millrace overview"))(on_hub(standing.overview))
    app.command(help=with_examples(standing.CONNECTIONS, "millrace connections --project demo"))(
        on_hub(standing.connections)
    )
    app.command(help=with_examples(standing.DEGRADED, "millrace degraded pi-7"))(on_hub(standing.degraded))


@cache
def _built() -> Callable[..., object]:
    """To put it together takes longer than most commands do."""
    return typer.main.get_command(command())


def main(argv: list[str] | None = None, world: World | None = None) -> int:
    """Run one command; its errors become one line on standard error."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        _built()(args=arguments, obj=world or World(), prog_name="millrace")
    except ClientError as error:
        if "--json" in arguments:
            print(json.dumps({"error": error.as_json()}))
        err.print(str(error), style="red", markup=False)
        _show_more(error)
        return error.exit_code
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except BrokenPipeError:
        # Whoever read our output, `head` for instance, has seen enough.
        sys.stderr.close()
        return 0
    return 0


ADVICE = {
    401: "Get a token with `millrace token` (for the hub on this machine), or set MILLRACE_TOKEN.",
    403: "Ask for a token that reaches it; for the hub on this machine make one: `millrace token --role operator …`.",
}


def _show_more(error: ClientError) -> None:
    """What is wrong field by field, where the hub told, and what to do where we know."""
    if not isinstance(error, Refused):
        return
    found = error.details.get("errors")
    for one in found if isinstance(found, list) else ():
        if isinstance(one, dict):
            place = one.get("pointer") or one.get("field") or ""
            err.print(f"  {place}: {one.get('message', '')}", style="red", markup=False)
    if error.status in ADVICE:
        err.print(ADVICE[error.status], markup=False)
