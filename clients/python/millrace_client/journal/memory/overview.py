"""The counts that status shows, for a journal in memory that is one ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from millrace.delivery.domain.families import Family
from millrace.delivery.domain.states import OPEN
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.deliveries import TargetStates
from millrace_client.journal.memory.ledger import MemoryLedger
from millrace_client.journal.ports import JournalCounts, TargetCounts


@dataclass(frozen=True, slots=True)
class MemoryOverview:
    ledger: MemoryLedger
    name: str
    states: TargetStates

    def journal(self) -> JournalCounts:
        kept = self.ledger.journals[self.name].kept
        bodies = [one.body for one in kept if one.body is not None]
        return JournalCounts(
            len(kept),
            len(bodies),
            sum(map(len, bodies)),
            sum(one.superseded_by is not None for one in kept),
            sum(one.family is Family.LOCAL_ONLY for one in kept),
            sum(bool(one.archived_to) for one in kept),
            min((one.captured_ms for one in kept if one.body is not None), default=None),
        )

    def targets(self) -> Sequence[TargetCounts]:
        return [self._counts(target) for target in self.ledger.journals[self.name].targets]

    def _counts(self, target: Target) -> TargetCounts:
        found = self.ledger.find(target.id, None, limit=len(self.ledger.journals[self.name].kept))
        fresh = self.ledger.unattempted(target, self.name)
        statuses = Counter(one.delivery.status for one in found)
        return TargetCounts(target, self.states.get(target.id), statuses, fresh, self._archived(target))

    def _archived(self, target: Target) -> int:
        """Events the target has yet to get and whose bytes are in an archive."""
        unsent = (
            self.ledger.delivery(target.id, self.name, one.position)
            for one in self.ledger.journals[self.name].kept
            if one.archived_to and one.superseded_by is None and target.wants(one.event.event_type, one.family)
            if one.position > target.start_at
        )
        return sum(delivery is None or delivery.status in OPEN for delivery in unsent)
