"""After the storm: wait until what is late has come, and note how long that took."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from millrace.delivery.domain.sources import outside_id
from tests.chaos.history import Sight
from tests.chaos.targets import Desk

Log = Mapping[str, Sequence[Sight]]


def expected_at(desk: Desk, log: Log) -> frozenset[str]:
    """The ids under which a target gets what is in the ledgers it hears of."""
    heard = [(ledger, sights) for ledger, sights in log.items() if desk.hears(ledger)]
    return frozenset(outside_id(ledger, sight.id) for ledger, sights in heard for sight in sights)


def all_taken(desks: Sequence[Desk], log: Log) -> Callable[[], bool]:
    """Whether every target took every event. It asks nobody, so that it delays nobody."""
    left = [(desk, expected_at(desk, log)) for desk in desks]

    def done() -> bool:
        left[:] = [(desk, expected) for desk, expected in left if not expected <= _taken(desk)]
        return not left

    return done


def all_told(desks: Sequence[Desk], log: Log, taken: Callable[[], bool]) -> Callable[[], bool]:
    """Whether the hub knows it of every target; asked once they took everything, and of none again that is done."""
    left = list(desks)

    def done() -> bool:
        if not taken():
            return False
        left[:] = [desk for desk in left if not expected_at(desk, log) <= _done(desk)]
        return not left

    return done


def _taken(desk: Desk) -> set[str]:
    return {id_ for post in list(desk.posts) if post.taken for id_ in post.ids}


def _done(desk: Desk) -> set[str]:
    return {one["event_id"] for one in desk.deliveries() if one["status"] in ("success", "duplicate")}


def wait(since: float, deadline: float, done: Callable[[], bool], every: float = 0.25) -> float:
    """Seconds after `since` at which it was done; infinity if it was not by the deadline."""
    while not done():
        if time.monotonic() > deadline:
            return math.inf
        time.sleep(every)
    return max(0.0, time.monotonic() - since)


def wait_for_all(
    since: float,
    patience: float,
    conditions: Mapping[str, Callable[[], bool]],
    progress: Callable[[], object],
    every: float = 0.5,
) -> dict[str, float]:
    """Seconds after `since` at which each condition came true; none waits for the look at another. What is late is
    waited for as long as something still comes; infinity if nothing has come for `patience` seconds."""
    over = threading.Event()

    def wait_for(condition: Callable[[], bool]) -> float:
        while not condition():
            if over.wait(every):
                return math.inf
        return max(0.0, time.monotonic() - since)

    with ThreadPoolExecutor(len(conditions)) as pool:
        waiting = {name: pool.submit(wait_for, condition) for name, condition in conditions.items()}
        before, moved = progress(), time.monotonic()
        try:
            while not all(one.done() for one in waiting.values()) and time.monotonic() - moved <= patience:
                time.sleep(every)
                if (now := progress()) != before:
                    before, moved = now, time.monotonic()
        finally:
            over.set()
        return {name: one.result() for name, one in waiting.items()}
