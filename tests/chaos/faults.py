"""What goes wrong: functions are killed, the emulator stops for a while."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from tests.chaos.history import History
from tests.e2e.conftest import Hub
from tests.e2e.processes import emulator_process, function_processes

KILLED, PAUSED = "killed", "pauses"
WAIT_FOR_WORK = 2.0
SHARED = ("archive", "deliver", "fan_out", "index", "submit")
"""Those that work for everybody are killed first, and twice as often as the others."""


@dataclass
class Killer:
    """Kills processes of every kind in turn; `deliver` while a target is just being asked, if one is."""

    hub: Hub
    history: History
    rng: random.Random
    kills: int
    pause: float
    spared: frozenset[str]
    is_delivering: Callable[[], bool]

    def __call__(self, over: threading.Event) -> None:
        kinds: list[str] = []
        done = 0
        while done < self.kills and not over.wait(self.rng.uniform(0.5, 1.5) * self.pause):
            kinds = kinds or self._round()
            while kinds and not self._kill(kinds.pop()):
                pass
            done = sum(kills_of(self.history).values())

    def _round(self) -> list[str]:
        """From the last to the first."""
        every = [self.rng.sample(kinds, len(kinds)) for kinds in (sorted(self.hub.stack.functions), SHARED)]
        return [kind for kinds in every for kind in kinds if kind not in self.spared]

    def _kill(self, kind: str) -> bool:
        if kind == "deliver":
            self._wait_for_work()
        victims = function_processes(self.hub, self.hub.stack.functions[kind])
        if not victims:
            return False
        with suppress(ProcessLookupError):
            os.kill(self.rng.choice(victims), signal.SIGKILL)
            self.history.fault(f"{KILLED} {kind}")
            return True
        return False

    def _wait_for_work(self) -> None:
        deadline = time.monotonic() + WAIT_FOR_WORK
        while not self.is_delivering() and time.monotonic() < deadline:
            time.sleep(0.005)


@dataclass
class Pauser:
    """Stops the emulator, and lets it go on: all its services, and the gateway before the functions."""

    hub: Hub
    history: History
    rng: random.Random
    seconds: float
    longest: float
    pause: float
    """Between two, on average."""

    def __call__(self, over: threading.Event) -> None:
        emulator, left = emulator_process(self.hub), self.seconds
        while left > 0 and not over.wait(self.rng.uniform(0.5, 1.5) * self.pause):
            length = min(left, self.rng.uniform(self.longest / 3, self.longest))
            start = time.monotonic()
            os.kill(emulator, signal.SIGSTOP)
            try:
                time.sleep(length)
            finally:
                os.kill(emulator, signal.SIGCONT)
            self.history.fault(PAUSED, start)
            left = self.seconds - paused_seconds(self.history)


def kills_of(history: History) -> Mapping[str, int]:
    """How many of each kind of function."""
    prefix = f"{KILLED} "
    return {what.removeprefix(prefix): count for what, count in history.counts.items() if what.startswith(prefix)}


def paused_seconds(history: History) -> float:
    return sum(fault.end - fault.start for fault in list(history.faults) if fault.kind == PAUSED)
