"""`make logs`: what the functions wrote, newest last; or one function's lines; or the end of the emulator's own log."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from heapq import nlargest
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local import cloud, stack
from local.errors import LocalError
from local.stack import HOME, Stack

LINES = 100
NOISE = ("START RequestId", "END RequestId")


def lines_of(running: Stack, function: str | None, count: int) -> list[str]:
    """The newest lines of one function, or of all. Raises `LocalError`."""
    if function is not None and function not in running.functions:
        raise LocalError(f"There is no function {function}. FUNCTION is one of: {', '.join(sorted(running.functions))}")
    names = [function] if function else list(running.functions)
    logs = cloud.at(running.endpoint_url).client("logs")
    try:
        events = [event for name in names for event in _events(logs, name, running.functions[name])]
    except (BotoCoreError, ClientError) as error:
        raise LocalError(f"The logs cannot be read: {error}") from error
    newest = sorted(nlargest(count, events, key=_time), key=_time)
    width = max(map(len, names))
    return [f"{_clock(event)} {event['function']:<{width}} {event['message'].rstrip()}" for event in newest]


def _events(logs: Any, name: str, function: str) -> Iterator[Mapping[str, Any]]:
    try:
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=f"/aws/lambda/{function}"):
            for event in page["events"]:
                if not event["message"].startswith(NOISE):
                    yield event | {"function": name}
    except logs.exceptions.ResourceNotFoundException:
        return


def _time(event: Mapping[str, Any]) -> int:
    return int(event["timestamp"])


def _clock(event: Mapping[str, Any]) -> str:
    return f"{datetime.fromtimestamp(_time(event) / 1000, UTC).astimezone():%H:%M:%S}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="local.logs", description=__doc__)
    parser.add_argument("--function", help="one function, by its name in the folder `functions`; default: all")
    parser.add_argument("--lines", type=int, default=LINES, help=f"how many lines at most; default {LINES}")
    parser.add_argument("--home", type=Path, default=HOME, help="the folder the stack keeps its files in")
    options = parser.parse_args(argv)
    log = options.home / "emulator.log"
    try:
        lines = lines_of(stack.required(options.home), options.function, options.lines)
    except LocalError as error:
        hint = f"\nWhat the emulator itself wrote is in {log}." if log.exists() else ""
        print(f"{error}{hint}", file=sys.stderr)
        return 1
    print("\n".join(lines) if lines else f"Nothing was written yet. What the emulator itself wrote is in {log}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
