"""`make stop`: end the embedded stack that runs from this folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from local import lock
from local.errors import LocalError
from local.stack import HOME


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="local.stop", description=__doc__)
    parser.add_argument("--home", type=Path, default=HOME, help="the folder the stack keeps its files in")
    home: Path = parser.parse_args(argv).home
    console = Console(highlight=False)
    try:
        pid = lock.end(home)
    except LocalError as error:
        Console(stderr=True, highlight=False).print(f"[red]{error}[/red]")
        return 1
    console.print(
        "Nothing to stop: the embedded stack is not running." if pid is None else "Stopped the embedded stack."
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
