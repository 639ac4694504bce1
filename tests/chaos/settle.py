"""After the storm: wait until what is late has come, and note how long that took."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

from millrace.delivery.domain.sources import outside_id
from tests.chaos.history import Sight
from tests.chaos.targets import Desk

Log = Mapping[str, Sequence[Sight]]


def expected_at(desk: Desk, log: Log) -> frozenset[str]:
    """The ids under which a target gets what is in the ledgers it hears of."""
    heard = [(ledger, sights) for ledger, sights in log.items() if desk.hears(ledger)]
    return frozenset(outside_id(ledger, sight.id) for ledger, sights in heard for sight in sights)


def delivered(desk: Desk, log: Log) -> bool:
    """The target took every event, and the hub knows it."""
    expected = expected_at(desk, log)
    if not expected <= {id_ for post in list(desk.posts) if post.taken for id_ in post.ids}:
        return False
    done = [one for one in desk.deliveries() if one["status"] in ("success", "duplicate")]
    return expected <= {one["event_id"] for one in done}


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
    """Seconds after `since` at which each condition came true. What is late is waited for as long as something still
    comes; infinity if nothing has come for `patience` seconds."""
    waited: dict[str, float] = {}
    before, moved = progress(), time.monotonic()
    while True:
        for name, condition in conditions.items():
            if name not in waited and condition():
                waited[name] = max(0.0, time.monotonic() - since)
        if len(waited) == len(conditions):
            break
        if (now := progress()) != before:
            before, moved = now, time.monotonic()
        elif time.monotonic() - moved > patience:
            break
        time.sleep(every)
    return {name: waited.get(name, math.inf) for name in conditions}


def all_delivered(desks: Sequence[Desk], log: Log) -> Callable[[], bool]:
    """Asks no target again that was complete once."""
    left = list(desks)

    def done() -> bool:
        left[:] = [desk for desk in left if not delivered(desk, log)]
        return not left

    return done
