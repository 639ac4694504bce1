"""What commands share that follow a session or a stream live: printing, gaps in red, and where it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from millrace_client.commands.connection import ChosenHub
from millrace_client.commands.output import err
from millrace_client.commands.websocket import show_status
from millrace_client.sync.subscriber import Subscriber
from millrace_client.sync.tailing import TailedEvent

StartTail = Callable[[Subscriber], AsyncGenerator[TailedEvent, None]]


def run_tail(hub: ChosenHub, tail: StartTail, show: Callable[[TailedEvent], None], count: int | None) -> None:
    """Until Ctrl-C, or after `count` events."""
    reached: list[int] = []
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(hub, tail, show, count, reached))
    err.print(f"Stopped after position {reached[-1]}." if reached else "Stopped.")


async def _run(
    hub: ChosenHub, tail: StartTail, show: Callable[[TailedEvent], None], count: int | None, reached: list[int]
) -> None:
    given = 0
    async with subscriber(hub) as client, aclosing(tail(client)) as events:
        async for one in events:
            if one.gap:
                err.print(f"Gap: events up to {one.position} are no longer kept.", style="red")
            else:
                show(one)
                given += 1
            reached[:] = [one.position]
            if given == count:
                return


def subscriber(hub: ChosenHub) -> Subscriber:
    return Subscriber(hub.url, hub.everything(), project=None if hub.token else "demo", on_status=show_status)
