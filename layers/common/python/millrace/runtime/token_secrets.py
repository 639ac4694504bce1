"""The secret that signs tokens, as Secrets Manager rotates it: a token outlives one rotation, and not two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from millrace.ledger.domain.errors import Unavailable

CURRENT, PREVIOUS = "AWSCURRENT", "AWSPREVIOUS"
KEPT_MS = 300_000
ASKED_AGAIN_MS = 1_000
"""How often a token that nothing verifies may make us look afresh: anybody can send one."""


@dataclass(slots=True)
class TokenSecrets:
    read: Callable[[str], str | None]
    """The secret of a stage; None if there is none."""
    clock: Callable[[], int]
    _known: dict[str, tuple[str | None, int]] = field(default_factory=dict)

    def __call__(self) -> Iterator[str]:
        """The secrets to try, the likeliest first. Only what is asked for is read: as a rule the current one alone."""
        tried = set[str]()
        for max_age in (KEPT_MS, ASKED_AGAIN_MS):
            for stage in (CURRENT, PREVIOUS):
                secret = self._at(stage, max_age)
                if secret and secret not in tried:
                    tried.add(secret)
                    yield secret

    def _at(self, stage: str, max_age: int) -> str | None:
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
