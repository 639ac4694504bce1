"""Makes a group of commands, with its examples in its help."""

from __future__ import annotations

from collections.abc import Callable

import typer


def group(help_: str, *examples: str, **commands: Callable[..., None]) -> typer.Typer:
    """`commands` by name; an underscore at the end, for words that Python keeps for itself, is left out."""
    app = typer.Typer(help=with_examples(help_, *examples), no_args_is_help=True, rich_markup_mode=None)
    for name, command in commands.items():
        app.command(name.rstrip("_"))(command)
    return app


def with_examples(help_: str, *examples: str) -> str:
    """Examples keep their lines however narrow the terminal is: they are there to be copied."""
    return "\n\n".join([help_, "Examples:", *(f"\b\n  {example}" for example in examples)])
