"""A shift: what keeps a drain alive in the eyes of others, and tells it when to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from millrace.delivery.domain.drains import LEASE_MS, SAFE_MS, SLICE_MS, DrainLease
from millrace.delivery.domain.hub_targets import HubTarget
from millrace.delivery.ports.drains import Drains, LeaseTaken
from millrace.ledger.domain.errors import MillraceError


@dataclass(slots=True)
class Shift:
    """From a wake-up to the end of its drains. `beat` may be called beside everything else, in a thread."""

    drains: Drains
    clock: Callable[[], int]
    holder: str
    keep: Callable[[], None]
    """Keeps the wake-up out of other hands for a while. Once nobody does, it comes again: that is how a death shows."""
    has_time: Callable[[], bool]
    """Whether the function has time for one more request."""
    began_ms: int = field(init=False)
    _drain: DrainLease | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.began_ms = self.clock()

    def beat(self) -> None:
        """A beat that fails is made good by the next."""
        with suppress(MillraceError):
            self.keep()
        with suppress(MillraceError):
            self._renew()

    def take(self, target: HubTarget, *, slow: bool) -> LeaseTaken:
        now_ms = self.clock()
        drain = DrainLease(target.tenant, target.id, self.holder, now_ms, now_ms + LEASE_MS, slow)
        taken = self.drains.take(drain, now_ms)
        if taken.began:
            with self._lock:
                self._drain = drain
        return taken

    @property
    def drain(self) -> DrainLease | None:
        with self._lock:
            return self._drain

    def end(self) -> bool:
        """Returns whether somebody asked for more."""
        with self._lock:
            drain, self._drain = self._drain, None
        return drain is not None and self.drains.end(drain)

    def may_go_on(self) -> bool:
        """Whether it is still this target's turn."""
        return self.has_time() and self.clock() - self.began_ms < SLICE_MS

    def may_send(self) -> bool:
        """Asked before each request: never without time for its answer, nor without the lease."""
        return self.has_time() and (self._is_safe() or (self._renew() and self._is_safe()))

    def _is_safe(self) -> bool:
        with self._lock:
            return self._drain is not None and self._drain.lives(self.clock() + SAFE_MS)

    def _renew(self) -> bool:
        """A lease that has ended may be renewed too, as long as nobody has taken it."""
        with self._lock:
            drain = self._drain
        if drain is None:
            return False
        later = replace(drain, until_ms=self.clock() + LEASE_MS)
        renewed = self.drains.renew(later)
        with self._lock:
            if self._drain is not None and self._drain.since_ms == drain.since_ms:
                self._drain = later if renewed else replace(drain, until_ms=0)
        return renewed
