"""From a commit to its broadcast on another socket, beside the raw latency of a stream, in turns on one emulator."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection

from tests.bench.hub import PATIENCE, Hub, events_in
from tests.bench.probe import Probe, deploy

EVENTS = 200
WARM_UP = 5
PROJECT, PARTITION = "latency", "p1"
PARTS = {"p50": 0.5, "p99": 0.99}
SINCE = ("answer", "request")
BROADCAST, STREAM = "commit to broadcast on another socket", "item put to function called (raw stream)"


@dataclass(slots=True)
class Times:
    """In ns, one of each per event."""

    asked: list[int] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)

    def after(self, moments: Sequence[int]) -> list[float]:
        """In ms, ascending. What arrives before the answer does is negative."""
        pairs = zip(self.arrived, moments, strict=True)
        return sorted((arrived - moment) / 1e6 for arrived, moment in pairs)

    def without_warm_up(self) -> Times:
        return Times(self.asked[WARM_UP:], self.answered[WARM_UP:], self.arrived[WARM_UP:])


def percentile(ascending: Sequence[float], part: float) -> float:
    return ascending[min(len(ascending) - 1, int(len(ascending) * part))]


def rows(hub: Hub, events: int = EVENTS) -> list[dict[str, Any]]:
    """The stream often calls the function before it answers the put, so the baseline counts from the put's request."""
    measured = asyncio.run(_measure(hub, deploy(hub), events))
    shown = [_row(name, times.without_warm_up()) for name, times in measured.items()]
    for row in shown:
        for label in PARTS:
            for since in SINCE:
                raw = shown[-1][f"{label} after the request, ms"]
                row[f"{label} after the {since} / raw"] = round(row[f"{label} after the {since}, ms"] / raw, 1)
    return shown


def _row(name: str, times: Times) -> dict[str, Any]:
    row: dict[str, Any] = {"what": name, "events": len(times.arrived)}
    for since in SINCE:
        taken = times.after(times.answered if since == "answer" else times.asked)
        row |= {f"{label} after the {since}, ms": round(percentile(taken, part), 1) for label, part in PARTS.items()}
    return row


async def _measure(hub: Hub, probe: Probe, events: int) -> Mapping[str, Times]:
    broadcast, stream, rng = Times(), Times(), random.Random(1)
    socket = await hub.listen(PROJECT, PARTITION)
    try:
        async with hub.submitting(PROJECT) as submit, asyncio.timeout(events * 2 + 2 * PATIENCE):
            for number, event in enumerate(events_in(PARTITION, events + WARM_UP, 1), 1):
                arrival = asyncio.create_task(_arrival(socket, number))
                broadcast.asked.append(time.time_ns())
                await submit([event])
                broadcast.answered.append(time.time_ns())
                broadcast.arrived.append(await arrival)
                await asyncio.sleep(rng.uniform(0.1, 0.2))
                stream.asked.append(time.time_ns())
                await asyncio.to_thread(probe.put, str(number))
                stream.answered.append(time.time_ns())
                stream.arrived.append(await asyncio.to_thread(probe.called, str(number)))
                await asyncio.sleep(rng.uniform(0.1, 0.2))
    finally:
        await socket.close()
    return {BROADCAST: broadcast, STREAM: stream}


async def _arrival(socket: ClientConnection, committed_id: int) -> int:
    text = await socket.recv()
    now = time.time_ns()
    assert json.loads(text)["payload"]["committed_id"] == committed_id, text
    return now
