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


def wait_for_targets(since: float, deadline: float, desks: Sequence[Desk], log: Log) -> float:
    """One after the other: the last to be complete decides."""
    return max((wait(since, deadline, lambda one=desk: delivered(one, log)) for desk in desks), default=0)  # type: ignore[misc]
