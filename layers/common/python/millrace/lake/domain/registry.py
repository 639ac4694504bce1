"""The registry (C5): which versions of which event types the tables know, and what happens to the others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace.lake.domain.catalog import MAX_VERSION
from millrace.lake.domain.wrapping import CATALOG
from millrace.ledger.domain import strict_json
from millrace.ledger.domain.errors import BadRequest, TooLarge

REJECT, QUARANTINE, FALLBACK = "reject", "quarantine", "fallback"
POLICIES = (REJECT, QUARANTINE, FALLBACK)

MAX_BYTES = 4 * 1024 * 1024

Defaults = Mapping[str, Any]

_VERSION = re.compile("[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class Known:
    """The versions of a type, each with the defaults of its payload's fields. No versions at all: every one."""

    versions: Mapping[int, Defaults] = field(default_factory=dict)
    policy: str = QUARANTINE

    def knows(self, version: int) -> bool:
        return not self.versions or version in self.versions

    def defaults(self, version: int) -> Defaults:
        """Of the nearest known version below, else of the lowest."""
        below = [known for known in self.versions if known <= version]
        return self.versions[max(below) if below else min(self.versions)] if self.versions else {}


WRAPPED: Mapping[str, Known] = {
    "sync": Known(),
    "realtime": Known({1: {}}),
    "streams": Known({2: {}}),
    "delivery": Known({1: {}}),
    "audit": Known({1: {}}),
}


@dataclass(frozen=True, slots=True)
class Registry:
    """`types` are those of the catalog; `contracts` hold by prefix: of a contract's ledgers every `{contract}.…`."""

    types: Mapping[str, Known] = field(default_factory=dict)
    contracts: Mapping[str, Known] = field(default_factory=lambda: dict(WRAPPED))
    policy: str = QUARANTINE

    @classmethod
    def parse(cls, text: bytes) -> Registry:
        """`{"policy"?, "types"?: {type: {"policy"?, "versions": {"1": {field: default}}}}, "contracts"?: {…}}`."""
        try:
            content = strict_json.parse(text, MAX_BYTES)
        except (BadRequest, TooLarge) as error:
            reason = error.message.replace("The body", "It").replace("the body", "it")
            details = {**error.details, "field": "registry"}
            raise BadRequest(f"The registry cannot be read. {reason}", **details) from error
        content = _object(content, "registry", {"policy", "types", "contracts"})
        policy = _policy(content.get("policy", QUARANTINE), "policy")
        types = _known(content.get("types", {}), "types", policy)
        contracts = _known(content.get("contracts", {}), "contracts", policy)
        return cls(types, {**WRAPPED, **contracts}, policy)

    def find(self, contract: str, event_type: str) -> Known | None:
        """What is known of a type of event in the ledgers of a contract."""
        if contract == CATALOG:
            return self.types.get(event_type)
        return self.contracts.get(contract) if event_type.startswith(f"{contract}.") else None


def _known(value: Any, where: str, policy: str) -> dict[str, Known]:
    known = {}
    for name, entry in _object(value, where).items():
        at = f"{where}.{name}"
        if (where, name) == ("contracts", CATALOG):
            raise _bad(at, "is none that holds by prefix; list the catalog's types under types")
        fields = _object(entry, at, {"policy", "versions"})
        versions = {
            _version(version, at): _object(defaults, f"{at}.versions.{version}")
            for version, defaults in _object(fields.get("versions", {}), f"{at}.versions").items()
        }
        if where == "types" and not versions:
            raise _bad(f"{at}.versions", "must list at least one version")
        known[name] = Known(versions, _policy(fields.get("policy", policy), f"{at}.policy"))
    return known


def _object(value: Any, where: str, keys: set[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _bad(where, "must be an object")
    if keys is not None and (unknown := sorted(set(value) - keys)):
        raise _bad(f"{where}.{unknown[0]}", f"is unknown; known are {', '.join(sorted(keys))}")
    return value


def _policy(value: Any, where: str) -> str:
    if value not in POLICIES:
        raise _bad(where, f"must be one of {', '.join(POLICIES)}")
    return str(value)


def _version(text: str, where: str) -> int:
    """One spelling for each version, so that none stands there twice."""
    if not _VERSION.fullmatch(text) or int(text) > MAX_VERSION:
        raise _bad(f"{where}.versions", f"must have integers from 1 to {MAX_VERSION} as keys")
    return int(text)


def _bad(where: str, rule: str) -> BadRequest:
    return BadRequest(f"The registry's {where} {rule}.", field=where)
