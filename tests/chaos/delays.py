"""How long the measured tenant's events take, alone and while another tenant floods and its targets hang."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from millrace.delivery.domain.sources import outside_id
from millrace.ledger.domain.names import Ledger
from tests.chaos.evidence import Delay
from tests.chaos.flood import flood
from tests.chaos.plan import FLOODER, MEASURED
from tests.chaos.settle import wait
from tests.chaos.targets import STEADY
from tests.chaos.tenants import PROJECT
from tests.chaos.world import World
from tests.chaos.writers import probe

WARM = 5
CALL_EVERY = 0.1
NOBODYS = Ledger.of("sync", "nobody", "nothing")


@dataclass(frozen=True, slots=True)
class Probes:
    """The ids of the events whose way is timed, and how long storage itself took for a call meanwhile."""

    alone: Sequence[str]
    flooded: Sequence[str]
    calls: Delay


def send_probes(world: World) -> Probes:
    """Nothing is killed meanwhile."""
    plan = world.plan
    hanging = [desk for desk in world.desks if desk.tenant is world.tenants[FLOODER] and desk.name != STEADY]
    _sent(world, "warm", WARM)
    with _calls(world) as calls_alone:
        alone = _sent(world, "alone", plan.probes)
    for desk in hanging:
        desk.free.clear()
    try:
        with flood(world.history, world.tenants[FLOODER], plan, plan.flood_rate, plan.seed):
            _under_way(world)
            with _calls(world) as calls_flooded:
                flooded = _sent(world, "flooded", plan.probes)
    finally:
        for desk in hanging:
            desk.free.set()
    return Probes(alone, flooded, Delay("a call of storage", calls_alone, calls_flooded))


def delays(world: World, probes: Probes) -> list[Delay]:
    """Of broadcasts and of deliveries, as far as they have arrived by now."""
    arrived = {"broadcast": _broadcasts(world), "delivery": _deliveries(world)}
    return [
        Delay(name, _seconds(world, times, probes.alone), _seconds(world, times, probes.flooded))
        for name, times in arrived.items()
    ]


@contextmanager
def _calls(world: World) -> Iterator[list[float]]:
    """How long storage takes for a call, all the while: one that is nobody's and goes through no function."""
    seconds, over = list[float](), threading.Event()

    def call() -> None:
        while not over.wait(CALL_EVERY):
            start = time.monotonic()
            world.storage.operator.state.marks(NOBODYS)
            seconds.append(time.monotonic() - start)

    with ThreadPoolExecutor(1) as pool:
        calling = pool.submit(call)
        try:
            yield seconds
        finally:
            over.set()
        calling.result()


def _under_way(world: World) -> None:
    """New processes take a while to start here; what is measured is a flood that runs."""
    start, counts = time.monotonic(), world.history.counts
    wait(0, start + world.plan.bound_seconds, lambda: counts["answers flood"] >= 2 * world.plan.flood_rate)


def _sent(world: World, phase: str, count: int) -> list[str]:
    """Sent, and arrived wherever they should, unless they are very late."""
    ids = probe(world.history, world.tenants[MEASURED], phase, count, world.plan.probe_seconds)
    deadline = time.monotonic() + world.plan.bound_seconds
    wait(0, deadline, lambda: set(ids) <= _broadcasts(world).keys() & _deliveries(world).keys())
    return ids


def _broadcasts(world: World) -> Mapping[str, float]:
    return _first((sight.id, sight.at) for sight in list(world.follower(MEASURED).seen))


def _deliveries(world: World) -> Mapping[str, float]:
    """By the event's own id; a target knows it by a longer one."""
    prefix = outside_id(world.tenants[MEASURED].ledger("sync", PROJECT), "")
    posts = list(world.desk(MEASURED, STEADY).posts)
    return _first((id_.removeprefix(prefix), post.at) for post in posts for id_ in post.ids)


def _first(seen: Iterable[tuple[str, float]]) -> dict[str, float]:
    times: dict[str, float] = {}
    for id_, at in seen:
        times.setdefault(id_, at)
    return times


def _seconds(world: World, arrived: Mapping[str, float], ids: Sequence[str]) -> list[float]:
    return [arrived.get(id_, math.inf) - world.history.sent[id_] for id_ in ids]
