"""The `millrace` command. Exit codes: 0, 1 refused or not all done, 2 usage, 3 unreachable."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated

import typer

from millrace.version import VERSION
from millrace_client.commands import installed
from millrace_client.commands.capture import capture
from millrace_client.commands.connection import World
from millrace_client.commands.follow import follow
from millrace_client.commands.health import health
from millrace_client.commands.output import err
from millrace_client.commands.pull import pull
from millrace_client.commands.stub import stub
from millrace_client.commands.submit import submit
from millrace_client.commands.sync import app as sync
from millrace_client.commands.targets import targets
from millrace_client.commands.token import token
from millrace_client.errors import ClientError


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
    for one in (submit, pull, follow, capture, stub, token, health, targets):
        app.command()(one)
    app.add_typer(sync.app, name="sync")
    installed.add_commands(app, installed.installed())
    return app


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
        return error.exit_code
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except BrokenPipeError:
        # Whoever read our output, `head` for instance, has seen enough.
        sys.stderr.close()
        return 0
    return 0
