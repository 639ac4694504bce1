"""A secret at the stages of its rotation by Secrets Manager, remembered for a while: a rotation locks nobody out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock

from millrace.ledger.domain.errors import Unavailable

CURRENT, PREVIOUS = "AWSCURRENT", "AWSPREVIOUS"
KEPT_MS = 300_000
ASKED_AGAIN_MS = 1_000
"""How often what no known secret fits may make us look afresh: anybody can send such a thing."""

AGES_MS = (KEPT_MS, ASKED_AGAIN_MS)
"""How old what is known may be: at the first try, and before giving up."""


@dataclass(slots=True)
class StagedSecret:
    read: Callable[[str], str | None]
    """The secret of a stage; None if there is none."""
    clock: Callable[[], int]
    _known: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self) -> Iterator[str]:
        """The secrets to try, the likeliest first. Only what is asked for is read: as a rule the current one alone."""
        tried = set[str]()
        for max_age in AGES_MS:
            for secret in self.known(max_age):
                if secret not in tried:
                    tried.add(secret)
                    yield secret

    def known(self, max_age: int) -> Iterator[str]:
        """The current and the previous secret, none of them known for longer than this."""
        for stage in (CURRENT, PREVIOUS):
            secret = self._at(stage, max_age)
            if secret:
                yield secret

    def _at(self, stage: str, max_age: int) -> str | None:
        with self._lock:
            known = self._known.get(stage)
            now = self.clock()
            if known is None or now - known[1] >= max_age:
                known = self._fresh(stage, known), now
                self._known[stage] = known
            return known[0]

    def _fresh(self, stage: str, known: tuple[str | None, int] | None) -> str | None:
        """What cannot be read afresh is used as it was known."""
        try:
            secret = self.read(stage)
        except Unavailable:
            if known is None:
                raise
            return known[0]
        if not secret and stage == CURRENT:
            raise Unavailable("A secret of the hub is empty.", cause="EmptySecret")
        return secret
