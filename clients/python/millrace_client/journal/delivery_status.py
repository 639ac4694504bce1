"""Status: which target has which event, why the rest is not there, and what to do (D11).

Some facts have two names: ours, and the one that the tools in use read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from millrace.delivery.domain.states import DELIVERED, OPEN, Status
from millrace.delivery.domain.targets import drains_blocked
from millrace.delivery.ports.deliveries import Deliveries, Found
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
        shown = [_target(one, one.target.id in current, one.target.id in unsigned) for one in targets]
        return {
            "event_journal": self._journal(targets),
            "delivery_targets": shown,
            "delivery_ledger": {**self._ledger(targets, current), "by_target": {one["id"]: one for one in shown}},
            "migration_conflicts": self._conflicts(),
            "terminal_failures": self._terminal(targets),
        }

    def _journal(self, targets: Sequence[TargetCounts]) -> Section:
        counts = self.overview.journal()
        collectable = self.collectable()
        suggestion = _suggestion(collectable.size, self.suggest_bytes)
        blocked = drains_blocked((one.target.id, one.state) for one in targets)
        return {
            "captured_event_count": counts.captured,
            "retained_event_count": counts.retained,
            "retained_bytes": counts.retained_bytes,
            "superseded_event_count": counts.superseded,
            "local_only_event_count": counts.local_only,
            "delivered_everywhere_event_count": collectable.events,
            "delivered_everywhere_bytes": collectable.size,
            "archived_event_count": counts.archived,
            "oldest_retained_event_at": _iso(counts.oldest_ms),
            "journal_size_bytes": counts.retained_bytes,
            "drain_blocked": blocked,
            "suggestion": suggestion,
            "gc_suggested": suggestion is not None,
            "gc_suggestion": suggestion
            and {
                "reason": suggestion,
                "retained_event_count": collectable.events,
                "journal_size_bytes": collectable.size,
            },
        }

    def _ledger(self, targets: Sequence[TargetCounts], current: Collection[str]) -> Section:
        now = [one for one in targets if one.target.id in current]
        before = [one for one in targets if one.target.id not in current]
        by_status = {status.value: _count(targets, {status}) for status in Status}
        delivered_now, delivered_before = _count(now, DELIVERED), _count(before, DELIVERED)
        return {
            "retained_event_count": self.overview.journal().retained,
            "current_target_delivered_count": delivered_now,
            "delivered_current_target": delivered_now,
            "previous_target_delivered_count": delivered_before,
            "delivered_previous_target": delivered_before,
            "terminal_failed_count": by_status[Status.TERMINAL_FAILED],
            "by_status": by_status,
            **{status.value: by_status[status] for status in sorted(OPEN)},
            "unattempted_count": sum(one.unattempted for one in now),
            "archived_undelivered_count": sum(one.archived for one in now),
        }

    def _conflicts(self) -> Section:
        conflicts = self.conflicts()
        return {
            "open_count": len(conflicts),
            "count": len(conflicts),
            "cleanup_blocked": bool(conflicts),
            "conflicts": [
                {
                    "event_id": one.event_id,
                    "source": one.source,
                    "reason": one.reason,
                    "detail": one.reason,
                    "found_ms": one.found_ms,
                }
                for one in conflicts[:MOST_LISTED]
            ],
        }

    def _terminal(self, targets: Sequence[TargetCounts]) -> Section:
        found = [
            one
            for counts in targets
            for one in self.deliveries.find(counts.target.id, Status.TERMINAL_FAILED, limit=MOST_LISTED)
        ]
        shown = [_failure(one) for one in found[:MOST_LISTED]]
        return {"count": _count(targets, {Status.TERMINAL_FAILED}), "failures": shown, "events": shown}


def _target(one: TargetCounts, current: bool, unsigned: bool) -> Section:
    return {
        "id": one.target.id,
        "target_id": one.target.id,
        "type": one.target.kind,
        "url": one.target.url,
        "canonical_url": one.target.url,
        "current": current,
        "unsigned": unsigned,
        "paused": one.state.paused_why,
        "blocked": one.state.blocked,
        "blocked_detail": one.state.blocked_detail,
        "failures_in_a_row": one.state.circuit.failures,
        "open_until_ms": one.state.circuit.open_until_ms,
        "deliveries": {status.value: one.statuses.get(status, 0) for status in Status},
        "delivered_count": _of(one.statuses, DELIVERED),
        "unattempted_count": one.unattempted,
        "archived_undelivered_count": one.archived,
    }


def _failure(one: Found) -> Section:
    return {
        "target": one.target_id,
        "target_id": one.target_id,
        "event_id": one.event_id,
        "event_type": one.event_type,
        "attempts": one.delivery.attempts,
        "first_ms": one.delivery.first_ms,
        "last_ms": one.delivery.last_ms,
        "error": one.delivery.error,
        "last_error": one.delivery.error,
    }


def _iso(at_ms: int | None) -> str | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()


def _count(targets: Sequence[TargetCounts], statuses: Collection[Status]) -> int:
    return sum(_of(one.statuses, statuses) for one in targets)


def _of(counts: Mapping[Status, int], statuses: Collection[Status]) -> int:
    return sum(counts.get(status, 0) for status in statuses)


def _suggestion(size: int, enough: int) -> str | None:
    if size < enough:
        return None
    return f"{size / 1024 / 1024:.0f} MiB are delivered to every known target: free them with sync gc or sync archive."
