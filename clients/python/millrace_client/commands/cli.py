"""The `millrace` command. Exit codes: 0, 1 refused or not all done, 2 usage, 3 unreachable."""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Annotated

import typer

from millrace.version import VERSION
from millrace_client import local_stack
from millrace_client.commands.capture import capture
from millrace_client.commands.connection import World
from millrace_client.commands.follow import follow
from millrace_client.commands.options import JsonOutput, Url
from millrace_client.commands.output import err, out
from millrace_client.commands.pull import pull
from millrace_client.commands.stub import stub
from millrace_client.commands.submit import submit
from millrace_client.commands.sync.app import sync_app
from millrace_client.errors import ClientError, Usage
from millrace_client.tokens import ROLES, Grant, sign_claims
from millrace_operator import archive as archive_cli
from millrace_operator import retain as retain_cli
from millrace_operator.quarantine import quarantine
from millrace_operator.registry import registry

app = typer.Typer(
    name="millrace",
    help="Talk to a Millrace event hub. Without --url, the one that `make run` started on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
KNOWN_ROLES = {"producer", "consumer", "operator"}


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    if version:
        print(VERSION)
        raise typer.Exit


app.command()(submit)
app.command()(pull)
app.command()(follow)
app.add_typer(archive_cli.app)
app.command()(retain_cli.retain)
app.command()(capture)
app.add_typer(sync_app, name="sync")
app.command()(stub)
app.add_typer(quarantine, name="quarantine")
app.add_typer(registry, name="registry")


@app.command()
def token(
    client: Annotated[str, typer.Option(help="The client_id of its bearer.")],
    project: Annotated[list[str], typer.Option(help="A project it opens; may be repeated.")],
    partition: Annotated[list[str], typer.Option(help="A partition, or a prefix ending in *; may be repeated.")],
    role: Annotated[
        list[str] | None, typer.Option(help="producer, consumer or operator; default producer and consumer.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="The tenant; the hub's default is `default`.")] = None,
    ttl: Annotated[str, typer.Option(help="How long it is valid: 90s, 30m, 12h, 7d.")] = "12h",
    as_json: JsonOutput = False,
) -> None:
    """Print a token for the hub that runs on this machine, signed with its secret."""
    if not client or not all(project):
        raise Usage("--client and --project must not be empty.")
    unknown = set(role or []) - KNOWN_ROLES
    if unknown:
        raise Usage(f"No such role: {', '.join(sorted(unknown))}. Known: {', '.join(sorted(KNOWN_ROLES))}.")
    grant = Grant(client, project, partition, role or ROLES, tenant, _seconds(ttl))
    claims = grant.claims(int(time.time()))
    signed = sign_claims(claims, local_stack.required().secret())
    print(json.dumps({"token": signed, "claims": claims}) if as_json else signed)


@app.command()
def health(ctx: typer.Context, url: Url = None, as_json: JsonOutput = False) -> None:
    """Ask the hub whether it is well."""
    world: World = ctx.obj
    with world.connect(url, None) as hub:
        answer = hub.health()
    if as_json:
        print(json.dumps(answer))
    else:
        out.print(", ".join(f"{name}: {value}" for name, value in answer.items()))


def _seconds(ttl: str) -> int:
    match = re.fullmatch(r"([1-9]\d{0,6})([smhd])", ttl)
    if match is None:
        raise Usage(f"--ttl {ttl} is not a duration; write it as 90s, 30m, 12h or 7d.")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def main(argv: list[str] | None = None, world: World | None = None) -> int:
    """Run one command; its errors become one line on standard error."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        app(args=arguments, obj=world or World(), prog_name="millrace")
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
