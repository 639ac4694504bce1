"""`make status`: what runs here, since when, what happens to its data, and which functions were at work."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.table import Table

from local import cloud, saves, stack, told
from local.errors import LocalError
from local.stack import HOME, Stack


@dataclass(frozen=True)
class Function:
    name: str
    """As in the folder `functions`."""
    deployed_as: str
    last_active: str | None
    """When it last wrote to its log."""


@dataclass(frozen=True)
class Status:
    running: bool
    note: str
    """In one sentence."""
    healthy: bool = False
    http_url: str | None = None
    websocket_url: str | None = None
    endpoint_url: str | None = None
    pid: int | None = None
    since: str | None = None
    keeps_data: bool = False
    last_saved: str | None = None
    functions: tuple[Function, ...] = ()


def status_of(home: Path) -> Status:
    save = saves.newest(home)
    last_saved = save.saved_at if save else None
    try:
        running = stack.read(home)
    except stack.LeftBehind as error:
        return Status(running=False, note=str(error), last_saved=last_saved)
    if running is None:
        return Status(running=False, note="No stack runs here. To start one: make run", last_saved=last_saved)
    healthy = _is_healthy(running)
    return Status(
        running=True,
        note="Millrace is running." if healthy else "Millrace runs, but its health check fails: make logs",
        healthy=healthy,
        http_url=running.http_url,
        websocket_url=running.websocket_url,
        endpoint_url=running.endpoint_url,
        pid=running.pid,
        since=running.since or None,
        keeps_data=running.keeps_data,
        last_saved=last_saved,
        functions=_functions(running),
    )


def _is_healthy(running: Stack) -> bool:
    try:
        return httpx.get(f"{running.http_url}/health", timeout=10).is_success
    except httpx.TransportError:
        return False


def _functions(running: Stack) -> tuple[Function, ...]:
    logs = cloud.at(running.endpoint_url).client("logs")
    return tuple(
        Function(name, deployed_as, _last_active(logs, deployed_as))
        for name, deployed_as in sorted(running.functions.items())
    )


def _last_active(logs: Any, function: str) -> str | None:
    try:
        found = logs.describe_log_streams(
            logGroupName=f"/aws/lambda/{function}", orderBy="LastEventTime", descending=True, limit=1
        )["logStreams"]
    except (BotoCoreError, ClientError):
        return None
    stamp = found[0].get("lastEventTimestamp") if found else None
    return datetime.fromtimestamp(stamp / 1000, UTC).isoformat(timespec="seconds") if stamp else None


def show(status: Status, console: Console) -> None:
    console.print(status.note, style="bold green" if status.healthy else "bold yellow", markup=False)
    if not status.running:
        if status.last_saved:
            console.print(f"Data of {told.moment(status.last_saved)} is kept: make run KEEP=1")
        return
    facts = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    facts.add_row("HTTP", status.http_url)
    facts.add_row("WebSocket", status.websocket_url)
    facts.add_row("AWS endpoint", status.endpoint_url)
    facts.add_row("since", told.moment(status.since) if status.since else "unknown")
    facts.add_row("process", str(status.pid or "not ours"))
    facts.add_row("data", _data(status))
    console.print(facts)
    functions = Table("function", "last active", box=None, padding=(0, 2, 0, 0))
    for function in status.functions:
        functions.add_row(function.name, told.moment(function.last_active) if function.last_active else "never")
    console.print()
    console.print(functions)


def _data(status: Status) -> str:
    if not status.keeps_data:
        return "goes when it stops"
    return f"kept; last saved {told.moment(status.last_saved)}" if status.last_saved else "kept; not saved yet"


def main(argv: list[str] | None = None) -> int:
    """Ends with 0 if a stack runs and is healthy, else with 1."""
    parser = argparse.ArgumentParser(prog="local.status", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument("--home", type=Path, default=HOME, help="the folder the stack keeps its files in")
    options = parser.parse_args(argv)
    try:
        status = status_of(options.home)
    except LocalError as error:
        Console(stderr=True, highlight=False, soft_wrap=True, markup=False).print(str(error), style="red")
        return 1
    if options.json:
        print(json.dumps(asdict(status), indent=2))
    else:
        show(status, Console(highlight=False, soft_wrap=True))
    return 0 if status.healthy else 1


if __name__ == "__main__":
    sys.exit(main())
