"""Writes docs/cli.md: the pages of the `millrace` command, from its own help."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from millrace_client.commands import cli

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
SHARED = {"--url", "--token", "--home", "--json", "--process-override", "--ws-url", "--help"}
START = """# The command line

`millrace` does what the doors of a hub do, with the same words. This page is made from its `--help` by
`make generated`; each example is run by a test.

Without `--url` it talks to the server that is [configured](delivery.md#which-server), and if there is none, to the hub
that `make run` started in this folder; for that one it makes a token by itself, with every role, for the project `demo`
and those that a command names. Elsewhere give `--token` or set `MILLRACE_TOKEN`. Most commands of operators need a
token with the role `operator`.

- `--json` prints one JSON object a line; everything about them goes to standard error.
- It ends with 0, with 1 if the hub refused something, with 2 if the call makes no sense, and with 3 if nobody answered.
- `millrace --install-completion` completes words in your shell.
- The commands `archive`, `quarantine`, `rebuild`, `registry`, `retain` and `tables` work on a hub's own storage. They
  are in [millrace-operator](../clients/operator/README.md). `lake` shows tables and steers quarantine and
  registry with a token alone.
"""


def files() -> dict[Path, str]:
    root: Any = typer.main.get_command(cli.command())
    from_storage = {"archive", "quarantine", "rebuild", "registry", "retain", "tables"}
    names = [name for name in root.commands if name not in from_storage]
    return {PAGE: "\n".join([START, *(_section(name, root.commands[name]) for name in names)])}


def _section(name: str, command: Any) -> str:
    text, examples = _split(command.help or "")
    lines = [f"## millrace {name}", "", text, ""]
    if examples:
        lines += ["```text", *examples, "```", ""]
    for sub, one in getattr(command, "commands", {}).items():
        lines += [f"`{name} {sub}{_arguments(one)}`: {_split(one.help or '')[0]}", *_options(one), ""]
    if not hasattr(command, "commands"):
        lines += [f"`{name}{_arguments(command)}`", *_options(command), ""]
    return "\n".join(lines)


def _split(help_: str) -> tuple[str, list[str]]:
    """What it does, in one paragraph each, and its examples."""
    text, _, rest = re.sub(r"\x08\n", "", help_).partition("Example")
    paragraphs = [" ".join(one.split()) for one in text.split("\n\n") if one.strip()]
    return "\n\n".join(paragraphs), [line.strip() for line in rest.splitlines() if line.strip().startswith("millrace ")]


def _arguments(command: Any) -> str:
    found = [one for one in command.params if one.param_type_name == "argument"]
    return "".join(f" {one.name.upper()}" if one.required else f" [{one.name.upper()}]" for one in found)


def _options(command: Any) -> list[str]:
    found = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    own = [one for one in found if not SHARED & set(one.opts)]
    return ["", *(f"- `{one.opts[0]}`: {one.help}" for one in own)] if own else []
