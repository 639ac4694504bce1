"""Reach: which ledgers of a contract a bearer may look at, as ranges of names, so that no other name is ever read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from millrace.delivery.domain.sources import known_ledger
from millrace.lake.domain.retention_rules import CONTRACTS, PARTS, Scope, check_scope
from millrace.ledger.domain.access import OPERATOR, PARTITION_OF, Identity
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.names import Ledger, join_key, split_key

END = "\U0010ffff"
"""After every character of a name."""

Span = tuple[str, str]
"""The first and the last name, both included. Where they are equal, one ledger is meant."""


def spans(identity: Identity, contract: str, prefix: str) -> Sequence[Span]:
    """Where the ledgers are that the bearer reaches and whose scope begins so; in order, and none overlaps another."""
    identity.require(OPERATOR)
    if contract not in CONTRACTS:
        raise BadRequest(f"contract must be one of {', '.join(CONTRACTS)}.", field="contract")
    wanted = _from(name_of(identity.tenant, contract, prefix))
    merged: list[Span] = []
    for first, last in sorted(_reached(identity, contract)):
        low, high = max(first, wanted[0]), min(last, wanted[1])
        if low > high:
            continue
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def require_ledger(identity: Identity, contract: str, text: str) -> Ledger:
    """The one ledger of a scope. Raises `Forbidden` if the bearer does not reach it."""
    identity.require(OPERATOR)
    scope = check_scope(identity.tenant, contract, text)
    if scope.is_pattern:
        raise BadRequest("scope must name one ledger; it must not end in *.", field="scope")
    if contract not in PARTITION_OF:
        identity.require_project(text)
    else:
        identity.require_reach(PARTITION_OF[contract](scope.parts[0]), "this ledger", field="scope")
    return known_ledger(scope.ledger)


def is_reached(identity: Identity, ledger: str) -> bool:
    """Whether the bearer may look at the ledger of this name."""
    contract, tenant, *scope = split_key(ledger)
    if tenant != identity.tenant or not scope:
        return False
    if contract not in PARTITION_OF:
        return scope[0] in identity.projects
    return identity.reaches(PARTITION_OF[contract](scope[0]))


def name_of(tenant: str, contract: str, text: str) -> str:
    """The name of a scope's ledger; of the beginning of a scope, that of the names: escaping goes by characters."""
    return join_key(contract, tenant, *Scope(tenant, contract, text).parts)


def _from(beginning: str) -> Span:
    return beginning, beginning + END


def _reached(identity: Identity, contract: str) -> Iterator[Span]:
    if contract not in PARTITION_OF:
        for project in identity.projects:
            name = join_key(contract, identity.tenant, project)
            yield name, name
        return
    kind = PARTITION_OF[contract]("")
    for pattern in identity.partitions:
        stem = pattern.removesuffix("*")
        if pattern.endswith("*") and kind.startswith(stem):
            yield _from(join_key(contract, identity.tenant, ""))
        elif stem.startswith(kind):
            name = join_key(contract, identity.tenant, stem.removeprefix(kind))
            if pattern.endswith("*"):
                yield _from(name)
            else:
                yield _from(f"{name}#") if contract in PARTS else (name, name)
