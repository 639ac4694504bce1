"""Many connections on one partition: does every one get every event, in order, and how many posts a second is that?"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from tests.bench.hub import Hub, Submitting, events_in
from tests.bench.report import Figure, exactly

CONNECTIONS, EVENTS = 500, 200
BATCH = 5
WINDOW = 10
"""So many events may be under way: a run of the fan-out must have sent what it read in its 60 seconds."""
AT_ONCE = 4
"""The emulator starts a process for every call at the same time."""
DEADLINE = 900
PROJECT, PARTITION = "crowd", "p1"


@dataclass(slots=True)
class Crowd:
    sockets: list[ClientConnection] = field(default_factory=list)
    heard: list[list[int]] = field(default_factory=list)
    """Of each connection, the committed ids as they came."""
    complete: int = 0
    """So many broadcasts have arrived everywhere."""
    arrivals: dict[int, int] = field(default_factory=dict)
    progress: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, number: int, events: int) -> None:
        ids = self.heard[number]
        try:
            while not ids or ids[-1] < events:
                position = json.loads(await self.sockets[number].recv())["payload"]["committed_id"]
                is_new = not ids or position > max(ids)
                ids.append(position)
                if is_new:
                    self._arrived(position)
        except ConnectionClosed:
            self.progress.set()  # its list stays short, and the figure says so

    def _arrived(self, nth: int) -> None:
        self.arrivals[nth] = self.arrivals.get(nth, 0) + 1
        if self.arrivals[nth] == len(self.sockets):
            self.complete = nth
            self.progress.set()

    async def until(self, complete: int) -> None:
        while self.complete < complete:
            self.progress.clear()
            await self.progress.wait()


@dataclass(frozen=True, slots=True)
class Delivered:
    heard: Sequence[Sequence[int]]
    events: int
    opening: float
    seconds: float

    @property
    def in_order(self) -> int:
        """Connections that got exactly 1, 2, 3 … to the last."""
        return sum(list(ids) == list(range(1, self.events + 1)) for ids in self.heard)

    @property
    def complete(self) -> int:
        """Connections that got all of them in order, each at least once: a post whose answer is late is repeated."""
        return sum(
            [position for number, position in enumerate(ids) if position > max(ids[:number], default=0)]
            == list(range(1, self.events + 1))
            for ids in self.heard
        )

    def row(self) -> dict[str, Any]:
        posts = sum(map(len, self.heard))
        return {
            "connections": len(self.heard),
            "events": self.events,
            "connections with 1…n in order": self.in_order,
            "broadcasts": posts,
            "seconds": round(self.seconds, 1),
            "events × connections per second": round(posts / self.seconds),
            "seconds to open and sync": round(self.opening, 1),
        }

    def figure(self) -> Figure:
        everyone = len(self.heard)
        name = f"{everyone} connections on one partition get events 1 to {self.events}, each once, in order"
        return exactly(name, f"{everyone} of {everyone}", f"{self.in_order} of {everyone}")


def deliver(hub: Hub, connections: int, events: int = EVENTS) -> Delivered:
    return asyncio.run(_deliver(hub, connections, events))


async def _deliver(hub: Hub, connections: int, events: int) -> Delivered:
    crowd, few = Crowd(), asyncio.Semaphore(AT_ONCE)

    async def opened() -> ClientConnection:
        async with few:
            return await hub.listen(PROJECT, PARTITION)

    async def closed(socket: ClientConnection) -> None:
        async with few:
            await socket.close()

    started = time.perf_counter()
    crowd.sockets = list(await asyncio.gather(*(opened() for _ in range(connections))))
    crowd.heard = [[] for _ in crowd.sockets]
    ready = time.perf_counter()
    listening = [asyncio.create_task(crowd.listen(number, events)) for number in range(connections)]
    try:
        async with hub.submitting(PROJECT) as submit, asyncio.timeout(DEADLINE):
            await _submit_all(crowd, submit, events)
            await asyncio.gather(*listening)
    except TimeoutError:
        pass  # what is missing shows in the figure
    seconds = time.perf_counter() - ready
    for task in listening:
        task.cancel()
    await asyncio.gather(*map(closed, crowd.sockets))
    return Delivered(crowd.heard, events, ready - started, seconds)


async def _submit_all(crowd: Crowd, submit: Submitting, events: int) -> None:
    batch = events_in(PARTITION, events, 2)
    for start in range(0, events, BATCH):
        await crowd.until(start + BATCH - WINDOW)
        await submit(batch[start : start + BATCH])
