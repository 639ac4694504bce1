"""Retry many: deliveries of a target that are chosen by state, type and time are to be tried again now (D4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millrace.delivery.application.manage_targets import ManageTargets
from millrace.delivery.domain.bulk import check_bulk
from millrace.delivery.ports.targets import ManyDeliveries, Wake, Wakes
from millrace.ledger.domain.access import OPERATOR, Identity


@dataclass(frozen=True, slots=True)
class RetryMany:
    targets: ManageTargets
    many: ManyDeliveries
    wakes: Wakes
    clock: Callable[[], int]

    def __call__(self, identity: Identity, target_id: str, body: Any) -> dict[str, Any]:
        """One step, of bounded work; the caller goes on with `next` until it is None."""
        identity.require(OPERATOR)
        asked = check_bulk(body)
        target, now_ms = self.targets.find(identity, target_id).target, self.clock()
        some = self.many.retry(target.key, asked.wanted, asked.after, now_ms, dry_run=asked.dry_run)
        if some.retried:
            self.wakes.send([Wake(identity.tenant, target_id)])
        return {
            "target_id": target_id,
            "matched": some.matched,
            "retried": some.retried,
            "dry_run": asked.dry_run,
            "next": some.after,
        }
