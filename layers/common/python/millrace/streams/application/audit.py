"""The audit ledger of a tenant, append-only: negotiations, privacy policies, grants and what they showed (T5, P4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.access import OPERATOR, Identity, runtime_partition
from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.ledger.ports import Log, State, Together

SCANNED = 10_000


@dataclass(frozen=True, slots=True)
class AuditLedger:
    """Who cannot be recorded, may not."""

    commit: Commit
    log: Log
    state: State
    heads: Heads
    together: Together
    clock: Callable[[], int]
    new_id: Callable[[], str]

    def record(self, identity: Identity, action: str, runtime_id: str, **more: Any) -> None:
        """Durable on return: call it before the action takes effect."""
        draft = self.entry(identity.client_id, action, runtime_id=runtime_id, **more)
        self.commit(audit_ledger(identity.tenant), [draft], Origin(identity.client_id))

    def entry(self, who: str, action: str, **more: Any) -> Draft:
        body = canonical({"ts_ms": self.clock(), "who": who, "action": action, **more})
        return Draft(f"{action}-{self.new_id()}", digest(body), body)

    def read(self, identity: Identity, after: int, limit: int) -> dict[str, Any]:
        """What happened to the runtimes that the bearer reaches, and to all of them.

        Rows of other runtimes are passed over, at most so many that an answer does not take long.
        """
        identity.require(OPERATOR)
        ledger = audit_ledger(identity.tenant)
        head = newest(self.log, self.heads, ledger, self.state.marks(ledger).hint)
        events: list[dict[str, Any]] = []
        at = after
        last = min(head, after + SCANNED)
        for pages in ReadLog(self.log, self.together).batches(ledger, after, last, limit):
            for event in (event for page in pages for event in page.events()):
                if at < event.position <= last and len(events) < limit and event.record.body is not None:
                    entry = json.loads(event.record.body)
                    if _concerns(identity, entry):
                        events.append({"position": event.position, **entry})
                    at = event.position
            if len(events) == limit:
                break
        return {"events": events, "next_after": at}


def audit_ledger(tenant: str) -> Ledger:
    return Ledger.of("audit", tenant)


def _concerns(identity: Identity, entry: dict[str, Any]) -> bool:
    return "runtime_id" not in entry or identity.reaches(runtime_partition(entry["runtime_id"]))
