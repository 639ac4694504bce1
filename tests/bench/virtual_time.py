"""Virtual time: the real code on storage that answers after DynamoDB-like delays, without waiting for any of them."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

T = TypeVar("T")

SPREAD = 0.35
"""Of the logarithm of a delay: one in a hundred takes more than twice the median."""
LONGEST_MS = 60.0


class VirtualTime:
    """Actors are greenlets; whoever waits gives way to the one that is due next. The same seed, the same history."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now_ms = 0.0
        self._due: list[tuple[float, int, greenlet]] = []
        self._number = 0
        self._hub = getcurrent()

    def clock(self) -> int:
        return int(self.now_ms)

    def spawn(self, at_ms: float, actor: Callable[[], object]) -> None:
        self._wake(at_ms, greenlet(actor, self._hub))

    def wait(self, ms: float) -> None:
        self._wake(self.now_ms + ms, getcurrent())
        self._hub.switch()

    def call(self, median_ms: float, effect: Callable[[], T]) -> T:
        """A call to storage: it takes effect somewhere in the middle."""
        delay = min(LONGEST_MS, self.rng.lognormvariate(0, SPREAD) * median_ms)
        self.wait(delay * 0.6)
        result = effect()
        self.wait(delay * 0.4)
        return result

    def together(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        if len(calls) == 1:
            return [calls[0]()]
        results: list[Any] = [None] * len(calls)
        errors: list[Exception] = []
        left, caller = len(calls), getcurrent()

        def run(number: int, call: Callable[[], Any]) -> None:
            nonlocal left
            try:
                results[number] = call()
            except Exception as error:  # noqa: BLE001 - raised below, once every call has ended
                errors.append(error)
            left -= 1
            if left == 0:
                self._wake(self.now_ms, caller)

        for number, call in enumerate(calls):
            self.spawn(self.now_ms, lambda number=number, call=call: run(number, call))  # type: ignore[misc]
        self._hub.switch()
        if errors:
            raise errors[0]
        return results

    def run(self, until_ms: float) -> None:
        while self._due and self._due[0][0] <= until_ms:
            self.now_ms, _, actor = heapq.heappop(self._due)
            actor.switch()

    def _wake(self, at_ms: float, actor: greenlet) -> None:
        self._number += 1
        heapq.heappush(self._due, (at_ms, self._number, actor))
