"""Hub status: which target has which event, why the rest is not there, and what to do (D11).

The sections are those of a client's journal, so that one reader understands both; what only a client has is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from millrace.delivery.application.inspect_deliveries import UNDELIVERED, delivery_json, known_as
from millrace.delivery.application.manage_targets import ManageTargets
from millrace.delivery.domain.authority import Bearer, unresolved
from millrace.delivery.domain.drains import DrainLease
from millrace.delivery.domain.inbox import journal
from millrace.delivery.domain.sources import place_of
from millrace.delivery.domain.states import Status
from millrace.delivery.domain.targets import Target, drains_blocked
from millrace.delivery.ports.drains import Drains, Line
from millrace.delivery.ports.targets import Agenda, Kept, Listing, Positions
from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.ledger.domain.names import join_key
from millrace.ledger.ports import Log, State

MOST_TERMINAL = 100
MOST_DUE = 20
DRAIN_DIED = "drain_died"
"""A drain did not give its lease back. Its wake-up comes again in seconds; the next minute's reminder looks too."""
NO_QUEUE = {"path": None, "event_count": 0, "body_upload_count": 0}

Section = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HubStatus:
    targets: ManageTargets
    listing: Listing
    positions: Positions
    agenda: Agenda
    drains: Drains
    line: Line
    log: Log
    state: State
    heads: Heads
    clock: Callable[[], int]

    def __call__(self, identity: Identity) -> Section:
        identity.require(OPERATOR)
        kept = self.targets.known_to(identity)
        drains = {drain.target_id: drain for drain in self.drains.of(identity.tenant)}
        waits = {one.target_id: one.since_ms for one in self.line.waiting(identity.tenant)}
        shown = [
            {
                **self._target(identity, one, drains.get(one.target.id)),
                "waits_since_ms": waits.get(one.target.id),
                "quick": one.state.quick,
            }
            for one in kept
        ]
        events = self._journal(identity, kept)
        ledger = self._ledger(identity, shown) | {"retained_event_count": events["retained_event_count"]}
        terminal, unreadable = ledger["terminal_failed_count"], list(self.targets.unreadable(identity))
        well = not terminal and not unreadable
        well = well and not any(one["paused"] or one["blocked"] or one["stuck"] for one in shown)
        return {
            "ok": well,
            "exit_code": 0 if well else 1,
            "auth_required": True,
            "auth_present": True,
            "active_queue": NO_QUEUE,
            "legacy_queue": NO_QUEUE,
            "target_authority": {
                **unresolved(None, {}, Bearer(identity.client_id, identity.team_slug)).as_json(),
                "error": None,
            },
            "event_journal": events,
            "delivery_targets": shown,
            "unreadable_targets": unreadable,
            "delivery_ledger": ledger,
            "migration_conflicts": {"open_count": 0, "conflicts": []},
            "terminal_failures": {"count": terminal, "failures": self._failures(kept)},
            "body_upload_compatibility": {"body_upload_count": 0, "body_upload_failure_count": 0},
        }

    def _journal(self, identity: Identity, kept: Sequence[Kept]) -> Section:
        """Of the token's team. Retention is the hub's gc, so it suggests none."""
        ledger = journal(identity.tenant, identity.team_slug)
        marks = self.state.marks(ledger)
        head = newest(self.log, self.heads, ledger, marks.hint)
        return {
            "captured_event_count": head,
            "retained_event_count": max(0, head - marks.floor + 1),
            "drain_blocked": drains_blocked((one.target.id, one.state) for one in kept),
            "suggestion": None,
        }

    def _ledger(self, identity: Identity, shown: list[Section]) -> Section:
        now = {one["target_id"] for one in shown}
        former = [id_ for id_ in self.targets.directory.former(identity.tenant) if id_ not in now]
        return {
            "current_target_delivered_count": sum(one["delivered_count"] for one in shown),
            "previous_target_delivered_count": sum(
                self._delivered(Target(join_key(identity.tenant, id_), "")) for id_ in former
            ),
            "terminal_failed_count": sum(one["deliveries"][Status.TERMINAL_FAILED] for one in shown),
            "by_status": {
                status.value: sum(one["deliveries"][status.value] for one in shown) for status in UNDELIVERED
            },
        }

    def _target(self, identity: Identity, kept: Kept, drain: DrainLease | None) -> Section:
        target, now_ms = kept.target.target(), self.clock()
        counts = self.listing.counts(target.id)
        due = self.agenda.due(target, now_ms, MOST_DUE)
        return {
            **self.targets.get(identity, kept.target.id),
            "delivered_count": self._delivered(target),
            "deliveries": {status.value: counts.get(status, 0) for status in UNDELIVERED},
            "has_due": bool(due) or drain is not None,
            "due": [{"contract": place.contract, "scope": place.scope} for place in map(place_of, due)],
            "drain": drain and {"holder": drain.holder, "since_ms": drain.since_ms, "until_ms": drain.until_ms},
            "stuck": DRAIN_DIED if drain is not None and not drain.lives(now_ms) else None,
        }

    def _delivered(self, target: Target) -> int:
        return sum(position.delivered for _, position in self.positions.all(target))

    def _failures(self, kept: Sequence[Kept]) -> list[Section]:
        found = [
            {"target_id": one.target.id, **delivery_json(replace(found, event_id=known_as(one.target, found)))}
            for one in kept
            for found in self.listing.page(one.target.key, Status.TERMINAL_FAILED, "", MOST_TERMINAL).found
        ]
        return found[:MOST_TERMINAL]
