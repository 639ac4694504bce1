"""The audit ledger of a tenant, append-only: what operators did, negotiations, policies, grants (T5, P4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.access import OPERATOR, Identity, runtime_partition
from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Event, Origin
from millrace.ledger.ports import Log, State, Together

SCANNED = 10_000
"""Entries that one answer looks at."""
AT_ONCE = 500

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries; empty: all of them."""

    action: str = ""
    client: str = ""
    since_ms: int = 0

    def __call__(self, entry: Entry) -> bool:
        chosen = self.action in ("", entry["action"]) and self.client in ("", entry["who"])
        return chosen and bool(entry["ts_ms"] >= self.since_ms)


EVERY = AuditFilter()


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
        self.append(identity, action, runtime_id=runtime_id, **more)

    def append(self, identity: Identity, action: str, **more: Any) -> None:
        """As `record`, of an action that concerns no runtime."""
        draft = self.entry(identity.client_id, action, **more)
        self.commit(audit_ledger(identity.tenant), [draft], Origin(identity.client_id))

    def entry(self, who: str, action: str, **more: Any) -> Draft:
        body = canonical({"ts_ms": self.clock(), "who": who, "action": action, **more})
        return Draft(f"{action}-{self.new_id()}", digest(body), body)

    def read(self, identity: Identity, after: int, limit: int, wanted: AuditFilter = EVERY) -> dict[str, Any]:
        """What the bearer may know of, in order. Other entries are passed over, at most so many that an answer does not
        take long."""
        ledger, head = self._entered(identity)
        events: list[Entry] = []
        at = after
        last = min(head, after + SCANNED)
        for event in self._events(ledger, after, last, limit):
            if len(events) == limit:
                break
            events += self._shown(identity, event, wanted)
            at = event.position
        return {"events": events, "next_after": at}

    def newest_first(
        self, identity: Identity, before: int | None, limit: int, wanted: AuditFilter = EVERY
    ) -> dict[str, Any]:
        """The same backwards, from below `before` or from the end. `next_before` is 0 at the beginning."""
        ledger, head = self._entered(identity)
        top = head if before is None else min(head, before - 1)
        least = max(0, top - SCANNED)
        events: list[Entry] = []
        at = top + 1
        while at - 1 > least and len(events) < limit:
            low = max(least, at - 1 - AT_ONCE)
            for event in sorted(self._events(ledger, low, at - 1, AT_ONCE), key=lambda one: -one.position):
                if len(events) == limit:
                    break
                events += self._shown(identity, event, wanted)
                at = event.position
        return {"events": events, "next_before": at if at > 1 else 0}

    def _entered(self, identity: Identity) -> tuple[Ledger, int]:
        identity.require(OPERATOR)
        ledger = audit_ledger(identity.tenant)
        return ledger, newest(self.log, self.heads, ledger, self.state.marks(ledger).hint)

    def _events(self, ledger: Ledger, after: int, last: int, want: int) -> Iterator[Event]:
        for pages in ReadLog(self.log, self.together).batches(ledger, after, last, want):
            for event in (event for page in pages for event in page.events()):
                if after < event.position <= last:
                    yield event

    def _shown(self, identity: Identity, event: Event, wanted: AuditFilter) -> list[Entry]:
        if event.record.body is None:
            return []
        entry = json.loads(event.record.body)
        return [{"position": event.position, **entry}] if wanted(entry) and concerns(identity, entry) else []


def audit_ledger(tenant: str) -> Ledger:
    return Ledger.of("audit", tenant)


def concerns(identity: Identity, entry: Entry) -> bool:
    """Whether the bearer may know of it: what it names has to be reached. A target may hear of anything."""
    if "target_id" in entry and not identity.sees_everything:
        return False
    if "project" in entry and entry["project"] not in identity.projects:
        return False
    reached = [entry[name] for name in ("partition",) if name in entry]
    reached += [runtime_partition(entry["runtime_id"])] if "runtime_id" in entry else []
    return all(identity.reaches(partition) for partition in reached)
