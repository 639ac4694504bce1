"""Set retention: an operator says what a scope, or a partition of it, needs no longer; and is told what holds (C8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millrace.lake.domain.retention import WHOLE
from millrace.lake.domain.retention_rules import Rule, Scope, check_change, check_scope
from millrace.lake.ports.retention import Policies
from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.domain.access import (
    OPERATOR,
    Identity,
    catalog_partition,
    runtime_partition,
    session_partition,
    team_partition,
)
from millrace.ledger.domain.errors import BadRequest, Conflict
from millrace.ledger.domain.names import INDEXED, Ledger
from millrace.ledger.ports import Log, State

PARTITIONS = {
    "realtime": session_partition,
    "streams": runtime_partition,
    "catalog": catalog_partition,
    "delivery": team_partition,
}


@dataclass(frozen=True, slots=True)
class SetRetention:
    policies: Policies
    log: Log
    state: State
    heads: Heads

    def __call__(self, identity: Identity, contract: str, text: str, body: Any) -> dict[str, Any]:
        scope = self._reached(identity, contract, text)
        change = check_change(body)
        if change.partition != WHOLE and contract not in INDEXED:
            raise BadRequest("Ledgers of this contract have no partitions; leave it out.", field="partition")
        if change.advance_to is not None:
            self._check_watermark(scope, change.advance_to)
        if not self.policies.change(scope, change):
            stored = self.policies.get(scope).get(change.partition, Rule())
            raise Conflict("A watermark never goes back.", field="advance_to", advance_to=stored.advance_to)
        return policy_json(scope, self.policies.get(scope))

    def read(self, identity: Identity, contract: str, text: str) -> dict[str, Any]:
        scope = self._reached(identity, contract, text)
        return policy_json(scope, self.policies.get(scope))

    def _reached(self, identity: Identity, contract: str, text: str) -> Scope:
        identity.require(OPERATOR)
        scope = check_scope(identity.tenant, contract, text)
        if contract == "sync":
            identity.require_project(text)
        else:
            identity.require_reach(PARTITIONS[contract](_name(scope)), "this scope", field="scope")
        return scope

    def _check_watermark(self, scope: Scope, position: int) -> None:
        if scope.is_pattern:
            raise BadRequest("A watermark is of one ledger; a scope with * has none.", field="advance_to")
        ledger = Ledger.to_read(scope.ledger)
        head = newest(self.log, self.heads, ledger, self.state.marks(ledger).hint)
        if position > head:
            raise BadRequest(
                "advance_to is above the newest position of the ledger.",
                field="advance_to",
                value_class="integer",
                newest_position=head,
            )


def policy_json(scope: Scope, rules: Mapping[str, Rule]) -> dict[str, Any]:
    """What a scope's answer says; a scope without rules is never pruned."""
    return {
        "contract": scope.contract,
        "scope": scope.text,
        **_rule_json(rules.get(WHOLE, Rule())),
        "partitions": [
            {"partition": partition, **_rule_json(rules[partition])}
            for partition in sorted(rules)
            if partition != WHOLE
        ],
    }


def _rule_json(rule: Rule) -> dict[str, Any]:
    return {"advance_to": rule.advance_to, "max_age_days": rule.max_age_days, "max_events": rule.max_events}


def _name(scope: Scope) -> str:
    """Of a stream the runtime decides; of the beginning of a runtime's name, that beginning and `*`."""
    return scope.parts[0]
