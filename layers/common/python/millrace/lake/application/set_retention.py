"""Set retention: an operator sets how long events of a scope or a partition are kept, and reads what is set (C8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millrace.lake.domain.retention import WHOLE
from millrace.lake.domain.retention_rules import CONTRACTS, Rule, Scope, check_change, check_scope
from millrace.lake.ports.retention import Policies
from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.domain.access import OPERATOR, PARTITION_OF, Identity
from millrace.ledger.domain.errors import BadRequest, Conflict, Forbidden
from millrace.ledger.domain.names import INDEXED, Ledger
from millrace.ledger.ports import Log, State


@dataclass(frozen=True, slots=True)
class SetRetention:
    policies: Policies
    log: Log
    state: State
    heads: Heads

    def __call__(self, identity: Identity, contract: str, text: str, body: Any) -> dict[str, Any]:
        scope = self.reached(identity, contract, text)
        change = check_change(body)
        if change.partition != WHOLE and contract not in INDEXED:
            raise BadRequest("Ledgers of this contract have no partitions; leave it out.", field="partition")
        if contract in INDEXED:
            _require_partition(identity, change.partition)
        if change.advance_to is not None:
            self._check_watermark(scope, change.advance_to)
        if not self.policies.change(scope, change):
            stored = self.policies.get(scope).get(change.partition, Rule())
            raise Conflict("A watermark never goes back.", field="advance_to", advance_to=stored.advance_to)
        return self._shown(identity, scope)

    def read(self, identity: Identity, contract: str, text: str) -> dict[str, Any]:
        """Of a project, the rules of the partitions that the bearer reaches."""
        return self._shown(identity, self.reached(identity, contract, text))

    def list(self, identity: Identity, contract: str | None, after: str, limit: int) -> dict[str, Any]:
        """The tenant's rules that the bearer reaches, one for each scope and partition. A page may be short."""
        identity.require(OPERATOR)
        if contract is not None and contract not in CONTRACTS:
            raise BadRequest(f"contract is one of {', '.join(CONTRACTS)}.", field="contract")
        page = self.policies.page(identity.tenant, contract, after, limit)
        shown = [
            {
                "contract": scope.contract,
                "scope": scope.text,
                "partition": None if partition == WHOLE else partition,
                **_rule_json(rule),
            }
            for scope, partition, rule in page.rules
            if not rule.is_empty and self._may_see(identity, scope, partition)
        ]
        return {"policies": shown, "next_after": page.after}

    def _may_see(self, identity: Identity, scope: Scope, partition: str) -> bool:
        """As `read` decides it."""
        try:
            self.reached(identity, scope.contract, scope.text)
        except Forbidden:
            return False
        return partition == WHOLE or identity.reaches(partition)

    def _shown(self, identity: Identity, scope: Scope) -> dict[str, Any]:
        rules = self.policies.get(scope)
        return policy_json(scope, {name: rules[name] for name in rules if name == WHOLE or identity.reaches(name)})

    def reached(self, identity: Identity, contract: str, text: str) -> Scope:
        """Raises `Forbidden` if the bearer may not say or read what holds for this scope."""
        identity.require(OPERATOR)
        scope = check_scope(identity.tenant, contract, text)
        if contract == "sync":
            identity.require_project(text)
        else:
            identity.require_reach(PARTITION_OF[contract](_name(scope)), "this scope", field="scope")
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


def _require_partition(identity: Identity, partition: str) -> None:
    """What is let go of a whole project goes from every partition."""
    if partition != WHOLE:
        identity.require_reach(partition, "this partition", field="partition")
    elif not identity.sees_everything:
        raise Forbidden("The token does not reach the whole project; name a partition.", field="partition")


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
