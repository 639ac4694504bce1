"""Replay a range: events of a ledger are to be sent to a target again, even those that it has (D4, D6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millrace.delivery.application.manage_targets import ManageTargets
from millrace.delivery.domain.replay import check_replay
from millrace.delivery.ports.targets import Replays, Wake, Wakes
from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.ledger.domain.errors import BadRequest


@dataclass(frozen=True, slots=True)
class ReplayRange:
    targets: ManageTargets
    replays: Replays
    wakes: Wakes
    clock: Callable[[], int]

    def __call__(self, identity: Identity, target_id: str, body: Any) -> dict[str, Any]:
        """One step, of bounded work; the caller goes on with `next` until it is None. Who may not read all that the
        target is sent, may not replay to it."""
        identity.require(OPERATOR)
        asked = check_replay(identity.tenant, body)
        target = self.targets.find(identity, target_id).target
        if not target.hears(asked.scope.ledger):
            raise BadRequest("The target's sources do not name this ledger.", field="scope")
        some = self.replays.replay(
            target.target(), asked.scope.ledger, asked.wanted, self.clock(), dry_run=asked.dry_run
        )
        if some.replayed:
            self.wakes.send([Wake(identity.tenant, target_id)])
        return {
            "target_id": target_id,
            "contract": asked.scope.contract,
            "scope": asked.scope.text,
            "matched": some.matched,
            "replayed": some.replayed,
            "delivered_before": some.delivered_before,
            "dry_run": asked.dry_run,
            "next": some.following,
        }
