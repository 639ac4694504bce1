"""Realtime metrics (R4): `emitted` is counted from the logs, `invalid` and `deduped` are stored counters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from millrace.ledger.application.heads import find_head
from millrace.ledger.domain.access import CONSUMER, Identity
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Log, Together
from millrace.realtime.ports import Counters, Sessions

INVALID, DEDUPED = "invalid", "deduped"


@dataclass(frozen=True, slots=True)
class RealtimeMetrics:
    log: Log
    sessions: Sessions
    counters: Counters
    together: Together

    def __call__(self, identity: Identity) -> dict[str, int]:
        """Of the bearer's tenant. A session's sequences are gapless, so its head is the number of its events."""
        identity.require(CONSUMER)
        ledgers = list(self.sessions.of_tenant(identity.tenant))
        heads = self.together([partial(self._head, ledger) for ledger in ledgers]) if ledgers else []
        kept = self.counters.read(identity.tenant)
        return {"emitted": sum(heads), INVALID: kept.get(INVALID, 0), DEDUPED: kept.get(DEDUPED, 0)}

    def _head(self, ledger: Ledger) -> int:
        return find_head(self.log, ledger, 0)
