"""The options that more than one command takes."""

from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option("--url", help="The hub; default: the server that is configured, else the one that runs here."),
]
Token = Annotated[
    str | None,
    typer.Option("--token", envvar="MILLRACE_TOKEN", help="A bearer token; made up for the local hub."),
]
Project = Annotated[str, typer.Option("--project", help="The project.")]
JsonOutput = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
