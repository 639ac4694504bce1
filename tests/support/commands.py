"""The examples in the command line's help, found where a person reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import typer

from millrace_client.commands import cli

OF_STORAGE = ("archive", "quarantine", "rebuild", "registry", "retain", "tables")
"""Commands of the package beside the client; its own tests run them."""


def commands() -> Iterator[tuple[str, Any]]:
    """The client's own commands and groups, by name; a group's commands are not listed by themselves."""
    root: Any = typer.main.get_command(cli.command())
    for name, command in root.commands.items():
        if name not in OF_STORAGE:
            yield name, command


def examples(command: Any) -> list[list[str]]:
    """As lists of words, without `millrace`."""
    lines = re.findall(r"^ +millrace (.+)$", command.help or "", re.MULTILINE)
    return [shlex.split(line) for line in lines]


EXAMPLES = [(name, words) for name, command in commands() for words in examples(command)]
