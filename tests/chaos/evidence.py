"""What a run left behind, as plain values: all that the checks look at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from tests.chaos.history import Answer, Fault, Post, Sight


@dataclass(frozen=True, slots=True)
class View:
    """What one reader or follower saw of a ledger, in its order."""

    name: str
    tenant: str
    ledger: str
    sights: Sequence[Sight]


@dataclass(frozen=True, slots=True)
class Delivered:
    """What the hub's delivery ledger says of one event at a target."""

    event_id: str
    status: str
    attempts: int


@dataclass(frozen=True, slots=True)
class TargetSeen:
    """A target: what it should have, what it was sent, and what the hub says of it."""

    name: str
    tenant: str
    expected: frozenset[str]
    posts: Sequence[Post]
    deliveries: Sequence[Delivered]


@dataclass(frozen=True, slots=True)
class Delay:
    """Seconds from sending an event to its arrival, by phase. What never arrived took for ever."""

    name: str
    alone: Sequence[float]
    flooded: Sequence[float]

    @property
    def ratio(self) -> float:
        alone = p99(self.alone)
        return p99(self.flooded) / alone if alone else math.inf

    @property
    def slowdown(self) -> float:
        """By the mean; at least 1. Infinity if it was not measured."""
        if not (self.alone and self.flooded):
            return math.inf
        return max(1.0, fmean(self.flooded) / fmean(self.alone))


def p99(seconds: Sequence[float]) -> float:
    """The nearest rank; of less than a hundred it is the longest."""
    return sorted(seconds)[math.ceil(0.99 * len(seconds)) - 1] if seconds else math.inf


@dataclass(frozen=True, slots=True)
class Size:
    """How much there was of something, and how much was asked for."""

    name: str
    wanted: float
    reached: float


@dataclass(frozen=True, slots=True)
class Evidence:
    answers: Sequence[Answer] = ()
    refused: Sequence[str] = ()
    log: Mapping[str, Sequence[Sight]] = field(default_factory=dict)
    """By ledger: every event of the run's tenants."""
    strangers: Sequence[str] = ()
    """Ledgers of these tenants that no good client ever wrote to."""
    views: Sequence[View] = ()
    targets: Sequence[TargetSeen] = ()
    faults: Sequence[Fault] = ()
    """Those that can leave a request to a target in doubt."""
    archive: Mapping[str, Sequence[Sight]] = field(default_factory=dict)
    archive_findings: Sequence[str] = ()
    """What the operator's verification says against it."""
    poison_taken: Sequence[str] = ()
    poison_unanswered: Sequence[str] = ()
    delivered_after: float = 0
    """Seconds from the last fault; infinity if they never were."""
    bound: float = 60
    delays: Sequence[Delay] = ()
    calls: Delay = Delay("a call of storage", (), ())
    """Of nobody's, to the emulator itself: all tenants share it, and here it is one process on the same machine."""
    ratio: float | None = 3
    sizes: Sequence[Size] = ()
