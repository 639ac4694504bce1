"""Retention's rules (C8, S13): for how long the events of a scope, or of one of its partitions, are needed.

A scope is what a contract's ledger is named by: a project, a session, a domain, a team; of a stream `runtime:stream`,
with `%` and `:` inside a name written as `%25` and `%3A`. A scope that ends in `*` means all that start so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millrace.lake.domain.retention import WHOLE
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.kinds import kind_of
from millrace.ledger.domain.names import join_key, split_key
from millrace.sync.domain.submit import normal_partition, partition_problem

CONTRACTS = ("sync", "realtime", "streams", "catalog", "delivery")
"""The audit has no place here: it is never pruned."""
PARTS = {"streams": 2}
MAX_POSITION = 2**53 - 1
MAX_DAYS = 36_500
MAX_SCOPE_BYTES = 512
MAX_STORED_SCOPE_BYTES = 600
"""As part of a key, where `#` and `%` take three bytes: there is room for this and for the longest partition."""
DAY_MS = 86_400_000
KEY_PARTS = 3
"""Of a rule: contract, scope and partition."""


@dataclass(frozen=True, slots=True)
class Scope:
    tenant: str
    contract: str
    text: str

    @property
    def is_pattern(self) -> bool:
        return self.text.endswith("*")

    @property
    def parts(self) -> list[str]:
        """The names it is made of; of a pattern, the last is the beginning of one."""
        return [_unescaped(part) for part in self.text.split(":")] if self.contract in PARTS else [self.text]

    @property
    def ledger(self) -> str:
        """The name of the one ledger it means; not for patterns."""
        return join_key(self.contract, self.tenant, *self.parts)

    def covers(self, text: str) -> bool:
        return text.startswith(self.text[:-1]) if self.is_pattern else text == self.text


def scope_of(ledger: str) -> Scope:
    """The exact scope of a ledger."""
    contract, tenant, *parts = split_key(ledger)
    return Scope(tenant, contract, ":".join(map(_escaped, parts)) if contract in PARTS else "#".join(parts))


def check_scope(tenant: str, contract: str, text: str) -> Scope:
    """`BadRequest` if there can be no such scope."""
    if contract not in CONTRACTS:
        raise BadRequest(f"contract must be one of {', '.join(CONTRACTS)}.", field="contract")
    if not text.strip() or len(text.encode()) > MAX_SCOPE_BYTES:
        raise BadRequest(f"scope must be a non-blank string of at most {MAX_SCOPE_BYTES} bytes.", field="scope")
    if len(join_key(text).encode()) > MAX_STORED_SCOPE_BYTES:
        rule = f"scope must be at most {MAX_STORED_SCOPE_BYTES} bytes, of which # and % take three each."
        raise BadRequest(rule, field="scope", max_bytes=MAX_STORED_SCOPE_BYTES)
    scope = Scope(tenant, contract, text)
    if not scope.is_pattern and len(scope.parts) != PARTS.get(contract, 1):
        raise BadRequest("A stream's scope is runtime_id:stream_id, or a beginning of it and *.", field="scope")
    return scope


@dataclass(frozen=True, slots=True)
class Rule:
    """Up to which position nothing is needed any more, and how many days and events are kept; None: no such bound."""

    advance_to: int = 0
    max_age_days: int | None = None
    max_events: int | None = None

    @property
    def is_empty(self) -> bool:
        return self == Rule()


@dataclass(frozen=True, slots=True)
class Change:
    """What a request sets. `removed` names bounds that were given as null."""

    partition: str = WHOLE
    advance_to: int | None = None
    max_age_days: int | None = None
    max_events: int | None = None
    removed: frozenset[str] = frozenset()


def check_change(body: Any) -> Change:
    if not isinstance(body, dict):
        raise BadRequest("The body must be an object.", field="body", value_class=kind_of(body))
    unknown = sorted(body.keys() - {"partition", "advance_to", "max_age_days", "max_events"})
    if unknown:
        raise BadRequest(
            "No such field; known: partition, advance_to, max_age_days, max_events.", field=unknown[0][:64]
        )
    if not body.keys() - {"partition"}:
        raise BadRequest("Give advance_to, max_age_days or max_events.", field="body")
    partition = body.get("partition")
    if partition is not None:
        problem = partition_problem(partition)
        if problem is not None:
            raise BadRequest(f"partition {problem}.", field="partition", value_class=kind_of(partition))
    removed = frozenset(name for name in ("max_age_days", "max_events") if name in body and body[name] is None)
    return Change(
        WHOLE if partition is None else normal_partition(partition),
        _number(body, "advance_to", 0, MAX_POSITION) if "advance_to" in body else None,
        _number(body, "max_age_days", 1, MAX_DAYS) if body.get("max_age_days") is not None else None,
        _number(body, "max_events", 1, MAX_POSITION) if body.get("max_events") is not None else None,
        removed,
    )


Rules = Mapping[tuple[Scope, str], Rule]
"""By scope and partition."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What holds for one ledger: a rule for every partition, and others for those that have their own."""

    whole: Rule = Rule()
    partitions: Mapping[str, Rule] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """No policy: nothing is ever pruned."""
        return self.whole.is_empty and all(rule.is_empty for rule in self.partitions.values())

    @property
    def rules(self) -> Sequence[Rule]:
        return [self.whole, *self.partitions.values()]


def ruling(ledger: str, rules: Rules) -> Ruling:
    """A partition's own rule counts for it alone, instead of the whole ledger's. A bound that a rule leaves out is
    taken from the next wider scope that has it; a watermark belongs to the very ledger."""
    own = scope_of(ledger)
    covering = [(key, rule) for key, rule in rules.items() if _same_contract(key[0], own) and key[0].covers(own.text)]
    covering.sort(key=lambda one: (one[0][0].is_pattern, -len(one[0][0].text)))
    by_partition: dict[str, list[tuple[Scope, Rule]]] = {}
    for (scope, partition), rule in covering:
        by_partition.setdefault(partition, []).append((scope, rule))
    joined = {partition: _joined(found) for partition, found in by_partition.items()}
    whole = joined.pop(WHOLE, Rule())
    return Ruling(whole, {partition: rule for partition, rule in joined.items() if not rule.is_empty})


def _joined(found: Sequence[tuple[Scope, Rule]]) -> Rule:
    advance_to = next((rule.advance_to for scope, rule in found if not scope.is_pattern), 0)
    days = next((rule.max_age_days for _, rule in found if rule.max_age_days is not None), None)
    events = next((rule.max_events for _, rule in found if rule.max_events is not None), None)
    return Rule(advance_to, days, events)


def check_after(after: str, prefix: str) -> None:
    """`BadRequest` if no page of rules whose keys begin so can end there."""
    if after and not (after.startswith(prefix) and after.count("#") == KEY_PARTS - 1):
        raise BadRequest("after must be the next_after of an earlier page.", field="after")


def _same_contract(one: Scope, other: Scope) -> bool:
    return (one.tenant, one.contract) == (other.tenant, other.contract)


def _number(body: Mapping[str, Any], field: str, low: int, high: int) -> int:
    value = body[field]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        rule = f"{field} must be an integer from {low} to {high}."
        raise BadRequest(rule, field=field, value_class=kind_of(value))
    return value


def _escaped(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")


def _unescaped(part: str) -> str:
    return part.replace("%3A", ":").replace("%25", "%")
