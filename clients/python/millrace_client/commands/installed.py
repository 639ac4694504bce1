"""Finds the commands of other packages. If a package is not installed, its command says what to install."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points

import typer

from millrace_client.errors import Usage

GROUP = "millrace.commands"
"""An entry point of this group names a function, which becomes a command, or a `typer.Typer`, a group of commands."""
OPERATOR = ("archive", "quarantine", "rebuild", "registry", "retain", "tables")
"""The commands of millrace-operator."""
BY_TOKEN_TOO = ("quarantine", "registry", "tables")


def installed() -> Iterable[EntryPoint]:
    return entry_points(group=GROUP)


def add_commands(app: typer.Typer, found: Iterable[EntryPoint]) -> None:
    names = set()
    for entry in found:
        names.add(entry.name)
        command = entry.load()
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=entry.name)
        else:
            app.command(entry.name)(command)
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    for name in OPERATOR:
        if name not in names:
            app.command(name, hidden=True, add_help_option=False, context_settings=anything)(_missing(name))


def _missing(name: str) -> Callable[[], None]:
    def missing() -> None:
        raise Usage(
            f"`millrace {name}` works on a hub's own storage and is not part of the client. Install millrace-operator "
            "beside it; from the repository: pip install ./clients/python ./clients/operator"
            + (" With a token, `millrace lake` does it through the hub." if name in BY_TOKEN_TOO else "")
        )

    return missing
