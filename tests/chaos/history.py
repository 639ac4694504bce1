"""What happened in a run, as those who took part saw it. Threads write it side by side."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

TENANT = re.compile(r"chaos[0-9a-f]{8}-[a-z]")


def tenants_in(event: Any) -> frozenset[str]:
    """The tenants of this or any run that an event names, wherever in it."""
    text = event if isinstance(event, str) else json.dumps(event)
    return frozenset(TENANT.findall(text))


@dataclass(frozen=True, slots=True)
class Answer:
    """A door has said that an event is committed. Not every door tells the position."""

    ledger: str
    id: str
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Sight:
    """One event as somebody saw it."""

    position: int
    id: str
    tenants: frozenset[str]
    at: float = 0


@dataclass(frozen=True, slots=True)
class Post:
    """One request to a target. Only what was `taken` was answered with success."""

    at: float
    ids: tuple[str, ...]
    tenants: frozenset[str]
    taken: bool = True


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that we broke, from when to when."""

    kind: str
    start: float
    end: float


@dataclass(slots=True)
class History:
    answers: list[Answer] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Good events that a door refused, each with what it said."""
    accepted: list[str] = field(default_factory=list)
    """Poison that a door took."""
    faults: list[Fault] = field(default_factory=list)
    sent: dict[str, float] = field(default_factory=dict)
    """When each probe was sent, by its id."""
    counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str, how_many: int = 1) -> None:
        with self._lock:
            self.counts[what] += how_many

    def answered(self, door: str, answers: Iterable[Answer]) -> None:
        told = list(answers)
        self.answers += told
        self.count(f"answers {door}", len(told))

    def fault(self, kind: str, start: float | None = None) -> None:
        """It ends now; it began now too if it is not told when."""
        now = time.monotonic()
        self.faults.append(Fault(kind, now if start is None else start, now))
        self.count(kind)

    @property
    def acknowledged(self) -> int:
        """Distinct events."""
        return len({(one.ledger, one.id) for one in list(self.answers)})

    @property
    def last_fault(self) -> float:
        return max((fault.end for fault in self.faults), default=time.monotonic())
