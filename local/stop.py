"""`make stop`: end the embedded stack that runs from this folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from local import lock, saves, stack, told
from local.errors import LocalError
from local.stack import HOME


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="local.stop", description=__doc__)
    parser.add_argument("--home", type=Path, default=HOME, help="the folder the stack keeps its files in")
    home: Path = parser.parse_args(argv).home
    console = Console(highlight=False, soft_wrap=True)
    try:
        console.print(_stopped(home))
    except LocalError as error:
        Console(stderr=True, highlight=False, soft_wrap=True, markup=False).print(str(error), style="red")
        return 1
    return 0


def _stopped(home: Path) -> str:
    running, before = stack.living(home), saves.newest(home)
    if lock.end(home) is None:
        return "Nothing to stop: the embedded stack is not running."
    save = saves.newest(home) if running and running.keeps_data else None
    if running and running.keeps_data and (save is None or (before and save.number <= before.number)):
        raise LocalError(f"Stopped the embedded stack, but not saved. {told.after_a_crash(save)}")
    return f"Stopped the embedded stack; {told.after_a_stop(save)}"


if __name__ == "__main__":
    raise SystemExit(main())
