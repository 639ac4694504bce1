"""The keys that a secret of the deployment holds: the current one seals, and the previous one still opens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millrace.ledger.adapters.staged_secret import AGES_MS, StagedSecret
from millrace.ledger.domain.keys import key_id


class StagedKeys:
    def __init__(self, read: Callable[[str], str | None], clock: Callable[[], int]) -> None:
        self._secrets = StagedSecret(read, clock)

    def current(self) -> bytes:
        return next(self._secrets()).encode()

    def find(self, wanted: bytes) -> Sequence[bytes]:
        for max_age in AGES_MS:
            keys = [secret.encode() for secret in self._secrets.known(max_age)]
            found = [key for key in keys if key_id(key) == wanted]
            if found:
                return found
        return []
