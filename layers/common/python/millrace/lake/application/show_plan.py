"""Show a plan: what the policies of one ledger would let go now, and who holds it back at which position (C8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.lake.application.plan_retention import PlanRetention
from millrace.lake.application.retain_events import COMPACTION, consumers_of
from millrace.lake.application.set_retention import SetRetention
from millrace.lake.domain.retention_rules import ruling
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.errors import BadRequest, Forbidden
from millrace.ledger.domain.names import INDEXED, Ledger

MOST_GOES = 100
"""Spans of positions in an answer."""


@dataclass(frozen=True, slots=True)
class ShowPlan:
    """Of one look. A run of retention asks more: what it prunes has been compacted, and folded into status."""

    retention: SetRetention
    plan: PlanRetention
    targets: Callable[[Identity, str], Mapping[str, int]]
    """By target, up to which position of a ledger it needs nothing any more, as the bearer may see it."""

    def __call__(self, identity: Identity, contract: str, text: str) -> dict[str, Any]:
        scope = self.retention.reached(identity, contract, text)
        if scope.is_pattern:
            raise BadRequest("A plan is of one ledger; a scope with * has none.", field="scope")
        if contract in INDEXED and not identity.sees_everything:
            raise Forbidden("The token does not reach the whole project.", field="scope")
        ledger = Ledger.to_read(scope.ledger)
        rules = ruling(ledger.name, self.retention.policies.of_tenant(identity.tenant))
        marks = self.retention.state.marks(ledger)
        holders = {consumer: marks.cursors.get(consumer, 0) for consumer in consumers_of(ledger)}
        holders |= self.targets(identity, ledger.name)
        plan = self.plan(ledger, rules, marks, holders)
        shown = plan.as_json()
        del shown["ledger"]
        return {
            "contract": contract,
            "scope": text,
            **shown,
            "goes": shown["goes"][:MOST_GOES],
            "complete": not self.plan.cut and len(shown["goes"]) <= MOST_GOES,
            "not_asked": [COMPACTION, *(["status"] if contract == "streams" else [])],
        }
