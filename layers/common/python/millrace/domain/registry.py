"""The registry (C5): which versions of which event types the tables know, and what happens to the others."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace.domain.canonical import canonical
from millrace.domain.catalog import MAX_VERSION, is_text
from millrace.domain.errors import BadRequest
from millrace.domain.wrapping import CATALOG

REJECT, QUARANTINE, FALLBACK = "reject", "quarantine", "fallback"
POLICIES = (REJECT, QUARANTINE, FALLBACK)

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
            content = json.loads(text, object_pairs_hook=_each_once)
        except (ValueError, RecursionError) as error:
            raise _bad("registry", "is not JSON, or has a number of thousands of digits") from error
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
        if not is_text(name):
            raise _bad(at, "has a lone surrogate in its name")
        if (where, name) == ("contracts", CATALOG):
            raise _bad(at, "is none that holds by prefix; list the catalog's types under types")
        fields = _object(entry, at, {"policy", "versions"})
        versions = {
            _version(version, at): _defaults(defaults, f"{at}.versions.{version}")
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


def _defaults(value: Any, where: str) -> Defaults:
    """What can be written into a payload later on."""
    defaults = _object(value, where)
    for name, default in defaults.items():
        try:
            canonical({name: default})
        except (ValueError, RecursionError) as error:
            raise _bad(f"{where}.{name}", "must be what JSON can tell: no NaN, infinity or lone surrogate") from error
    return defaults


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built: dict[str, Any] = {}
    for name, value in pairs:
        if name in built:
            raise BadRequest(f"The registry has the key {json.dumps(name[:64])} twice in one object.", field="registry")
        built[name] = value
    return built


def _bad(where: str, rule: str) -> BadRequest:
    where = where.encode("utf-8", "backslashreplace").decode()
    return BadRequest(f"The registry's {where} {rule}.", field=where)
