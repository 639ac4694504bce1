"""`millrace health`: whether the hub is well."""

from __future__ import annotations

import json

import typer

from millrace_client.commands.connection import Asked, World
from millrace_client.commands.journal_options import Home, Override
from millrace_client.commands.options import JsonOutput, Url
from millrace_client.commands.output import out


def health(
    ctx: typer.Context, url: Url = None, override: Override = False, home: Home = None, as_json: JsonOutput = False
) -> None:
    """
    Ask the hub whether it is well.

    Examples:

    \b
      millrace health
    """
    world: World = ctx.obj
    with world.connect(Asked(url, override=override, home=home)) as hub:
        answer = hub.health()
    if as_json:
        print(json.dumps(answer))
    else:
        out.print(", ".join(f"{name}: {value}" for name, value in answer.items()))
