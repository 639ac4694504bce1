"""`make demo`: what the hub promises, shown on a real one. Ends with an error if anything differs from what it says."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from local import stack
from local.embedded import embedded_stack
from local.emulator import free_port
from local.errors import LocalError
from local.greeting import console_of, operator_token
from local.scene import Scene
from local.stack import HOME, Stack
from millrace_client.errors import ClientError, Refused
from millrace_client.local_stack import secret_of
from millrace_client.sync.http import Client
from millrace_client.sync.live import Live
from millrace_client.tokens import Grant, sign

MANY = 130
PAGE = 50


class Differs(LocalError):
    """The hub did something else than the demo says."""


@dataclass(frozen=True)
class Story:
    """Each method is one step; `project` is new every time, so that the demo can be run again."""

    hub: Client
    stranger: Client
    project: str
    console: Console
    live: Callable[[], Live]
    """A new client of the hub's WebSocket."""

    def tell(self) -> None:
        first = self.commit_three_events()
        self.commit_them_again(first)
        self.use_an_id_for_something_else()
        self.commit_many()
        self.read_them_in_pages()
        asyncio.run(self.listen_while_others_talk())
        self.ask_for_a_foreign_partition()

    def commit_three_events(self) -> list[int]:
        results = self.hub.submit(self.project, [_event(number) for number in range(1, 4)])
        positions = [result.get("committed_id") for result in results]
        self.check("Three events are committed, at positions 1, 2 and 3", positions, [1, 2, 3])
        return [int(position) for position in positions if position]

    def commit_them_again(self, first: list[int]) -> None:
        results = self.hub.submit(self.project, [_event(number) for number in range(1, 4)])
        positions = [result.get("committed_id") for result in results]
        self.check("The same three again: same positions, nothing new", positions, first)

    def use_an_id_for_something_else(self) -> None:
        [result] = self.hub.submit(self.project, [_event(1, text="something else")])
        outcome = (result["status"], result.get("reason"))
        self.check("A used id with other content is rejected", outcome, ("rejected", "validation_failed"))

    def commit_many(self) -> None:
        events = [_event(number) for number in range(4, 4 + MANY)]
        results = self.hub.submit(self.project, events[:100]) + self.hub.submit(self.project, events[100:])
        positions = [result.get("committed_id") for result in results]
        self.check(f"{MANY} more are committed, without a gap", positions, list(range(4, 4 + MANY)))

    def read_them_in_pages(self) -> None:
        pages = list(self.hub.pages(self.project, ["orders"], limit=PAGE))
        sizes = [len(page["events"]) for page in pages]
        self.check(f"Sync reads them in pages of {PAGE}", sizes, [50, 50, 33])
        positions = [event["committed_id"] for page in pages for event in page["events"]]
        self.check("Every event once, in order", positions, list(range(1, 4 + MANY)))

    async def listen_while_others_talk(self) -> None:
        """One connection follows from the start; another submits over its own socket meanwhile."""
        head = 3 + MANY
        async with self.live() as listener, self.live() as talker, asyncio.timeout(60):
            heard: list[int] = []
            async for event in listener.follow(["orders"], most=head + 1):
                heard.append(event["committed_id"])
                if len(heard) == head:
                    self.check("A follower on the WebSocket catches up", heard, list(range(1, head + 1)))
                    await talker.submit(_event(head + 1))
            self.check("… and hears live of what another one submits", heard[head:], [head + 1])

    def ask_for_a_foreign_partition(self) -> None:
        try:
            self.stranger.sync(self.project, ["orders"])
            outcome = "an answer"
        except Refused as error:
            outcome = error.code
        self.check("A token for other partitions reads nothing", outcome, "forbidden")
        [result] = self.stranger.submit(self.project, [_event(1000)])
        outcome = f"{result['status']}, {result.get('reason')}"
        self.check("… and writes nothing", outcome, "rejected, forbidden")

    def check(self, claim: str, found: Any, expected: Any) -> None:
        if found != expected:
            self.console.print(f"[red]✗[/red] {claim}")
            raise Differs(f"expected {_short(expected)}, found {_short(found)}")
        self.console.print(f"[green]✓[/green] {claim}: [dim]{_short(found)}[/dim]")


def _event(number: int, text: str = "hello") -> dict[str, Any]:
    payload = {"number": number, "text": text}
    return {"id": f"event-{number}", "partitions": ["orders"], "event": {"type": "note", "payload": payload}}


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 6:
        return f"{value[0]}, {value[1]}, … {value[-1]}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def show(running: Stack, console: Console) -> None:
    project = f"demo-{uuid.uuid4().hex[:8]}"
    secret = secret_of(running.endpoint_url, running.region, running.secret_arn)
    mine, theirs = sign(Grant("demo", [project]), secret), sign(Grant("stranger", [project], ["other"]), secret)
    console.print(f"Project {project} at {running.http_url}\n")
    with Client(running.http_url, mine) as hub, Client(running.http_url, theirs) as stranger:
        Story(
            hub, stranger, project, console, lambda: Live(running.websocket_url or "", project, mine, store=":memory:")
        ).tell()


def leave_a_scene(running: Stack, console: Console) -> None:
    """Things to look at, in the console or from the command line."""
    console.print("\nTo look at there is now:", style="bold")
    for line in Scene(running.http_url, operator_token(running)).set():
        console.print(f"  {line}", markup=False)
    console.print(f"\nIn the console: {console_of(running)}", markup=False)


@contextmanager
def a_stack(home: Path, console: Console) -> Iterator[Stack]:
    """The one that runs, else one of our own that ends with us."""
    try:
        running = stack.read(home)
    except stack.LeftBehind as error:
        console.print(str(error), style="yellow", markup=False)
        running = None
    if running is not None:
        yield running
        return
    console.print("No stack is running; starting one for the demo …")
    with tempfile.TemporaryDirectory(prefix="millrace-demo-") as own, embedded_stack(Path(own), free_port()) as started:
        yield started


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="local.demo", description=__doc__)
    parser.add_argument("--home", type=Path, default=HOME, help="the folder the running stack keeps its files in")
    console = Console(highlight=False, soft_wrap=True)
    try:
        with a_stack(parser.parse_args(argv).home, console) as running:
            show(running, console)
            leave_a_scene(running, console)
    except (LocalError, ClientError) as error:
        Console(stderr=True, highlight=False, soft_wrap=True, markup=False).print(str(error), style="red")
        return 1
    console.print("\nEverything was as it should be.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
