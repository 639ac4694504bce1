"""The storm: everybody writes, reads and delivers while functions die and the emulator stops."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tests.chaos.doors import DOORS
from tests.chaos.faults import Killer, Pauser, kills_of, paused_seconds
from tests.chaos.flood import flood
from tests.chaos.history import History
from tests.chaos.live import SOCKET, SocketWriter
from tests.chaos.plan import FLOODER
from tests.chaos.poison import Poisoner
from tests.chaos.targets import MOODY
from tests.chaos.world import World, say
from tests.chaos.writers import TIMEOUT, Writer

TELL_SECONDS = 5


def storm(world: World) -> None:
    """Returns when every writer has its last answer, or has given up."""
    plan = world.plan
    over, gives_up = threading.Event(), threading.Event()
    _moods(world, moody=True)
    pool = ThreadPoolExecutor(3 + plan.lanes * len(world.tenants))
    try:
        with flood(world.history, world.tenants[FLOODER], plan, plan.flood_rate / 3, plan.seed + 1):
            faults = [pool.submit(fault, over) for fault in _faults(world)]
            writers = list(_writers(world, pool, over, gives_up))
            _watch(world, faults)
            over.set()
            _moods(world, moody=False)
        _finish(writers, gives_up)
        for fault in faults:
            fault.result()
    finally:
        over.set()
        gives_up.set()
        pool.shutdown()


def _moods(world: World, *, moody: bool) -> None:
    for desk in world.desks:
        desk.moody = moody and desk.name == MOODY


def _faults(world: World) -> Iterator[Any]:
    """Spread over the storm, with some time left after the last of them."""
    plan, history = world.plan, world.history
    pauses = math.ceil(1.5 * plan.pause_seconds / plan.longest_pause)
    yield Killer(
        world.hub,
        history,
        world.rng("kills"),
        plan.kills,
        0.8 * plan.seconds / max(1, plan.kills),
        plan.spared,
        lambda: any(desk.at_work for desk in world.desks),
    )
    yield Pauser(
        world.hub,
        history,
        world.rng("pauses"),
        plan.pause_seconds,
        plan.longest_pause,
        max(0.0, 0.8 * plan.seconds - plan.pause_seconds) / max(1, pauses),
    )
    yield Poisoner(history, list(world.tenants.values()), world.rng("poison"), 0.5)


def _writers(
    world: World, pool: ThreadPoolExecutor, over: threading.Event, gives_up: threading.Event
) -> Iterator[Future[None]]:
    """Some over HTTP for each tenant, and one on its socket. They ask for each other's events too."""
    plan, history = world.plan, world.history
    pause = 0.7 * plan.seconds * (plan.lanes + 1) * len(world.tenants) * plan.batch / plan.events
    for number, (letter, tenant) in enumerate(world.tenants.items()):
        shared: list[list[str]] = []
        for lane in range(plan.lanes):
            rng = world.rng(f"{letter}-{lane}")
            doors = DOORS[lane :: plan.lanes]
            first = number % len(doors)
            writer = Writer(history, tenant, doors[first:] + doors[:first], plan.batch, pause, rng, shared)
            yield pool.submit(writer, over, gives_up)
        socket = SocketWriter(history, tenant, plan.batch, pause, world.rng(f"socket-{letter}"), shared)
        yield world.loop.start(socket(over, gives_up))


def _watch(world: World, faults: list[Future[None]]) -> None:
    """Until the storm has had its time, its events, its kills and its pauses; or far too long."""
    plan, history, start, told = world.plan, world.history, time.monotonic(), 0.0
    while (lasted := time.monotonic() - start) < plan.limit_seconds:
        kills, paused, events = sum(kills_of(history).values()), paused_seconds(history), history.acknowledged
        if lasted - told >= TELL_SECONDS:
            told = lasted
            say(f"{lasted:.0f} s: {events} events, {kills} kills, {paused:.0f} s paused")
        enough = events >= plan.events and kills >= plan.kills and paused >= plan.pause_seconds
        enough = enough and all(doors_used(history).values())
        if lasted >= plan.seconds and enough:
            return
        for fault in faults:
            if fault.done():
                fault.result()
        time.sleep(0.5)


def doors_used(history: History) -> dict[str, int]:
    """By door, how many answers it gave."""
    names = [door.name for door in DOORS] + [SOCKET]
    return {name: history.counts[f"answers {name}"] for name in names}


def _finish(writers: list[Future[None]], gives_up: threading.Event) -> None:
    timer = threading.Timer(TIMEOUT, gives_up.set)
    timer.start()
    try:
        for writer in writers:
            writer.result()
    finally:
        timer.cancel()
