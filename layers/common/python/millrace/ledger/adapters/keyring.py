"""The deployment's stream secret, current and previous, as Secrets Manager rotates it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock

from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.keys import key_id

CURRENT, PREVIOUS = "AWSCURRENT", "AWSPREVIOUS"
KEPT_MS = 300_000
ASKED_AGAIN_MS = 1_000
"""How often an unknown key may make us look afresh: anybody can send a cursor that names one."""


@dataclass(slots=True)
class StagedKeys:
    read: Callable[[str], str | None]
    """The secret of a stage; None if there is none."""
    clock: Callable[[], int]
    _read_ms: int = -KEPT_MS
    _staged: list[bytes] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def current(self) -> bytes:
        return self._known(KEPT_MS)[0]

    def find(self, wanted: bytes) -> Sequence[bytes]:
        for max_age in (KEPT_MS, ASKED_AGAIN_MS):
            found = [secret for secret in self._known(max_age) if key_id(secret) == wanted]
            if found:
                return found
        return []

    def _known(self, max_age: int) -> list[bytes]:
        with self._lock:
            if not self._staged or self.clock() - self._read_ms >= max_age:
                self._read()
            return self._staged

    def _read(self) -> None:
        """What cannot be read afresh is used as it was known."""
        try:
            staged = [self.read(stage) for stage in (CURRENT, PREVIOUS)]
        except Unavailable:
            if not self._staged:
                raise
        else:
            self._staged = [secret.encode() for secret in staged if secret]
        self._read_ms = self.clock()
        if not self._staged:
            raise Unavailable("A secret of the hub is empty.", cause="EmptySecret")
