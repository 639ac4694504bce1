"""A seeded scheduler: actors are greenlets that give way at every call to storage, and inside it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from greenlet import GreenletExit, getcurrent, greenlet


@dataclass(slots=True)
class Scheduler:
    """The same seed gives the same history. Sticky: an actor often goes on, which finds rare bugs far sooner."""

    rng: random.Random
    stickiness: float
    strides_ms: tuple[int, ...] = (0, 1, 5, 50, 400, 1_500)
    steps: int = 0
    clock_ms: int = 1_000_000
    _ready: list[greenlet] = field(default_factory=list)
    _late: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    _hub: greenlet = field(default_factory=getcurrent)

    def spawn(self, actor: Callable[[], None], delay: int = 0) -> None:
        if delay:
            self._late.append((self.steps + delay, actor))
        else:
            self._ready.append(greenlet(actor, parent=self._hub))

    def pause(self) -> None:
        """Give way. Called by an actor; anything may happen before it returns."""
        self._hub.switch()

    def now(self) -> int:
        return self.clock_ms

    def run(self, limit: int = 50_000) -> None:
        current: greenlet | None = None
        ready, random, bits = self._ready, self.rng.random, self.rng.getrandbits
        strides_ms, strides = self.strides_ms, len(self.strides_ms)
        stride_bits = strides.bit_length()
        while ready or self._late:
            self.steps += 1
            if self.steps > limit:
                raise AssertionError("the simulation does not end: an actor makes no progress")
            if self._late:
                self._admit()
            if not ready:
                continue
            if current is None or random() > self.stickiness:
                current = ready[_below(len(ready), bits)]
            # As `choice` does it, without two calls for each step: an eighth of a run.
            chosen = bits(stride_bits)
            while chosen >= strides:
                chosen = bits(stride_bits)
            self.clock_ms += strides_ms[chosen]
            current.switch()
            if current.dead:
                ready.remove(current)
                current = None

    def _admit(self) -> None:
        due = [item for item in self._late if item[0] <= self.steps or not self._ready]
        for item in due:
            self._late.remove(item)
            self._ready.append(greenlet(item[1], parent=self._hub))


def _below(limit: int, bits: Callable[[int], int]) -> int:
    width = limit.bit_length()
    chosen = bits(width)
    while chosen >= limit:
        chosen = bits(width)
    return chosen


class Killed(GreenletExit):
    """The process of an actor died between two instructions."""
