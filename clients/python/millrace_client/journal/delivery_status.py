"""Status: which target has which event, why the rest is not there, and what to do (D11)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millrace.delivery.domain.states import DELIVERED, Status
from millrace.delivery.domain.targets import drains_blocked
from millrace.delivery.ports.deliveries import Deliveries
from millrace_client.journal.collect import Collected
from millrace_client.journal.migration_ports import MigrationConflict
from millrace_client.journal.ports import Overview, TargetCounts

SUGGEST_BYTES = 50 * 1024 * 1024
MOST_LISTED = 100

Section = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    overview: Overview
    deliveries: Deliveries
    conflicts: Callable[[], Sequence[MigrationConflict]] = tuple
    """Those of a migration that are open; a journal nobody migrates into has none."""
    collectable: Callable[[], Collected] = Collected
    """What gc would remove; nothing where retention does that."""
    suggest_bytes: int = SUGGEST_BYTES

    def __call__(self, current: Collection[str], unsigned: Collection[str] = ()) -> Section:
        """
        Five of the seven sections; the other two are the client's own.

        `current`: the targets of today. `unsigned`: those whose requests could be signed, but are not (D12).
        """
        targets = self.overview.targets()
        return {
            "event_journal": self._journal(targets),
            "delivery_targets": [_target(one, one.target.id in current, one.target.id in unsigned) for one in targets],
            "delivery_ledger": self._ledger(targets, current),
            "migration_conflicts": self._conflicts(),
            "terminal_failures": self._terminal(targets),
        }

    def _journal(self, targets: Sequence[TargetCounts]) -> Section:
        counts = self.overview.journal()
        collectable = self.collectable()
        return {
            "captured_event_count": counts.captured,
            "retained_event_count": counts.retained,
            "retained_bytes": counts.retained_bytes,
            "superseded_event_count": counts.superseded,
            "local_only_event_count": counts.local_only,
            "delivered_everywhere_event_count": collectable.events,
            "delivered_everywhere_bytes": collectable.size,
            "drain_blocked": drains_blocked((one.target.id, one.state) for one in targets),
            "suggestion": _suggestion(collectable.size, self.suggest_bytes),
        }

    def _ledger(self, targets: Sequence[TargetCounts], current: Collection[str]) -> Section:
        now = [one for one in targets if one.target.id in current]
        before = [one for one in targets if one.target.id not in current]
        return {
            "retained_event_count": self.overview.journal().retained,
            "current_target_delivered_count": _count(now, DELIVERED),
            "previous_target_delivered_count": _count(before, DELIVERED),
            "terminal_failed_count": _count(targets, {Status.TERMINAL_FAILED}),
            "by_status": {status.value: _count(targets, {status}) for status in Status},
            "unattempted_count": sum(one.unattempted for one in now),
        }

    def _conflicts(self) -> Section:
        conflicts = self.conflicts()
        return {
            "open_count": len(conflicts),
            "conflicts": [
                {"event_id": one.event_id, "source": one.source, "reason": one.reason, "found_ms": one.found_ms}
                for one in conflicts[:MOST_LISTED]
            ],
        }

    def _terminal(self, targets: Sequence[TargetCounts]) -> Section:
        found = [
            one
            for counts in targets
            for one in self.deliveries.find(counts.target.id, Status.TERMINAL_FAILED, limit=MOST_LISTED)
        ]
        return {
            "count": _count(targets, {Status.TERMINAL_FAILED}),
            "failures": [
                {
                    "target": one.target_id,
                    "event_id": one.event_id,
                    "event_type": one.event_type,
                    "attempts": one.delivery.attempts,
                    "first_ms": one.delivery.first_ms,
                    "last_ms": one.delivery.last_ms,
                    "error": one.delivery.error,
                }
                for one in found[:MOST_LISTED]
            ],
        }


def _target(one: TargetCounts, current: bool, unsigned: bool) -> Section:
    return {
        "id": one.target.id,
        "type": one.target.kind,
        "url": one.target.url,
        "current": current,
        "unsigned": unsigned,
        "paused": one.state.paused_why,
        "blocked": one.state.blocked,
        "blocked_detail": one.state.blocked_detail,
        "failures_in_a_row": one.state.circuit.failures,
        "open_until_ms": one.state.circuit.open_until_ms,
        "deliveries": {status.value: one.statuses.get(status, 0) for status in Status},
        "unattempted_count": one.unattempted,
    }


def _count(targets: Sequence[TargetCounts], statuses: Collection[Status]) -> int:
    return sum(_of(one.statuses, statuses) for one in targets)


def _of(counts: Mapping[Status, int], statuses: Collection[Status]) -> int:
    return sum(counts.get(status, 0) for status in statuses)


def _suggestion(size: int, enough: int) -> str | None:
    if size < enough:
        return None
    return f"{size / 1024 / 1024:.0f} MiB are delivered to every known target: free them with sync gc or sync archive."
