"""The settings of a live connection: timeouts, heartbeat and pauses. Tests pass in their own clock and randomness."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds. API Gateway ends a connection after ten idle minutes, hence the heartbeat."""

    heartbeat: float = 300
    request_timeout: float = 30
    connect_timeout: float = 10
    buffered_events: int = 1000
    first_pause: float = 0.5
    longest_pause: float = 30
    healthy_after: float = 60
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    random: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Status:
    """What a connection is doing: connecting, connected, live, waiting, pruned or resync; `detail` is for people."""

    state: str
    detail: str = ""


class Backoff:
    """Exponential, with full jitter."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tries = 0

    def next(self) -> float:
        ceiling = min(self._settings.longest_pause, self._settings.first_pause * 2.0 ** min(self._tries, 30))
        self._tries += 1
        return self._settings.random() * ceiling

    def reset(self) -> None:
        self._tries = 0
