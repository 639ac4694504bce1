"""`make run`: the embedded stack in the foreground, until Ctrl-C; or the same template on a LocalStack that runs."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from rich.console import Console

from local import cloud, lock, saves, stack, told
from local.deploy import deploy
from local.embedded import Keep, running_stack, wait_until_healthy
from local.emulator import EmulatorDied
from local.errors import LocalError
from local.greeting import greet
from local.stack import HOME, ROOT, STACK_NAME, Stack

BUILT_TEMPLATE = ROOT / ".aws-sam" / "build" / "template.yaml"


def run_embedded(home: Path, port: int, keep: Keep | None, console: Console) -> None:
    """Returns when asked to stop, by Ctrl-C, SIGTERM or `make stop`. Raises `EmulatorDied` when that happens."""
    try:
        with lock.held(home):
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, _interrupt)
            stack.forget(home)
            console.print(f"Starting the embedded stack on port {port} …")
            save = saves.to_continue(home, port) if keep == "1" else saves.newest(home)
            if save is not None and keep != "new":
                console.print(told.beginning(save, continued=keep == "1"))
            _serve(home, port, keep, console)
    except KeyboardInterrupt:
        console.print("\nStopped.")
    except EmulatorDied as error:
        raise LocalError(f"{error}\n\n{told.after_a_crash(saves.newest(home) if keep else None)}") from error


def _serve(home: Path, port: int, keep: Keep | None, console: Console) -> None:
    with running_stack(home, port, keep=keep) as (running, emulated):
        greet(running, console)
        console.print(f"\nCtrl-C stops it; {told.what_stop_does(keeps_data=keep is not None)}.")
        try:
            emulated.wait()
        except KeyboardInterrupt:
            if keep:
                console.print("\nSaving the data …")
    console.print(f"\nStopped; {told.after_a_stop(saves.newest(home) if keep else None)}")


def _interrupt(*_: object) -> NoReturn:
    """Once: what follows is the clean-up, and a second Ctrl-C must not cut that short."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def run_localstack(home: Path, console: Console) -> None:
    """LocalStack runs the functions in containers, so it gets what `sam build` made, with its wheels."""
    where = cloud.localstack()
    console.print(f"Deploying to LocalStack at {where.endpoint_url} …")
    running = Stack.of(where, STACK_NAME, deploy(where, BUILT_TEMPLATE, STACK_NAME))
    wait_until_healthy(running)
    running.write(home)
    greet(running, console)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="local.run", description=__doc__)
    parser.add_argument("--port", type=int, default=4566, help="where the embedded stack listens")
    parser.add_argument("--stack", choices=["embedded", "localstack"], default="embedded", help="what to deploy to")
    parser.add_argument(
        "--keep", choices=["1", "new"], help="keep the data over a stop: go on with what was kept before, or begin anew"
    )
    parser.add_argument("--home", type=Path, default=HOME, help="the folder the stack keeps its files in")
    options = parser.parse_args(argv)
    if not 1 <= options.port <= 65_535:
        parser.error(f"--port {options.port}: a port is a number from 1 to 65535, such as: make run PORT=4600")
    if options.keep and options.stack == "localstack":
        parser.error("--keep is for the embedded stack; LocalStack keeps its data itself, if it is told to")
    console = Console(highlight=False, soft_wrap=True)
    try:
        if options.stack == "localstack":
            run_localstack(options.home, console)
        else:
            run_embedded(options.home, options.port, options.keep, console)
    except lock.AlreadyRunning as error:
        running = stack.living(options.home)
        where = f" at {running.http_url}" if running else "; it is just starting"
        console.print(f"{str(error).rstrip('.')}{where}. Stop it with: make stop")
        asked_for_another = running is not None and urlsplit(running.endpoint_url).port != options.port
        return 1 if asked_for_another else 0
    except LocalError as error:
        Console(stderr=True, highlight=False, soft_wrap=True, markup=False).print(str(error), style="red")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
