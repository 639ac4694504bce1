"""Retention's rules in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from millrace.lake.domain.retention_rules import Change, Rule, Rules, Scope, check_after
from millrace.lake.ports.retention import PolicyPage
from millrace.ledger.domain.names import join_key

NAMES = ("advance_to", "max_age_days", "max_events")


@dataclass(slots=True)
class MemoryPolicies:
    rules: dict[tuple[Scope, str], Rule] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def get(self, scope: Scope) -> Mapping[str, Rule]:
        with self.lock:
            return {partition: rule for (of, partition), rule in self.rules.items() if of == scope}

    def change(self, scope: Scope, change: Change) -> bool:
        with self.lock:
            before = self.rules.get((scope, change.partition), Rule())
            if change.advance_to is not None and change.advance_to < before.advance_to:
                return False
            kept = {name: None if name in change.removed else getattr(before, name) for name in NAMES}
            given = {name: getattr(change, name) for name in NAMES if getattr(change, name) is not None}
            self.rules[scope, change.partition] = Rule(**{**kept, **given})
            return True

    def page(self, tenant: str, contract: str | None, after: str, limit: int) -> PolicyPage:
        with self.lock:
            mine = [
                (join_key(scope.contract, scope.text, partition), scope, partition, rule)
                for (scope, partition), rule in self.rules.items()
                if scope.tenant == tenant and contract in (None, scope.contract)
            ]
        found = sorted(mine, key=lambda one: one[0])
        check_after(after, "" if contract is None else join_key(contract, ""))
        rest = [one for one in found if one[0] > after]
        return PolicyPage([one[1:] for one in rest[:limit]], rest[limit - 1][0] if len(rest) > limit else None)

    def of_tenant(self, tenant: str) -> Rules:
        with self.lock:
            return {key: rule for key, rule in self.rules.items() if key[0].tenant == tenant}
