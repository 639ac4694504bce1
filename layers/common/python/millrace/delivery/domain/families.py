"""Event families: what may happen to an event by its type's prefix (D2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from millrace.ledger.domain.errors import BadRequest


class Family(StrEnum):
    TEAMSPACE = "teamspace"
    """A fact of the team: delivered, never dropped. Whatever is not listed is one."""
    LOCAL_ONLY = "local_only"
    """Kept here, delivered nowhere."""
    DISCARDABLE = "discardable"
    """Delivered, unless its family is opted out of."""
    UNDECIDED = "undecided"
    """Captured while the configuration could not be read: kept, and delivered once it can be decided."""


@dataclass(frozen=True, slots=True)
class Families:
    """`prefixes`: which family the types that begin so are in, the longest prefix deciding. `opted_out`: prefixes."""

    prefixes: Mapping[str, Family] = field(default_factory=dict)
    opted_out: frozenset[str] = frozenset()
    otherwise: Family = Family.TEAMSPACE

    def of(self, event_type: str) -> Family:
        matching = [prefix for prefix in self.prefixes if event_type.startswith(prefix)]
        return self.prefixes[max(matching, key=len)] if matching else self.otherwise

    def wants_out(self, event_type: str) -> bool:
        return any(event_type.startswith(prefix) for prefix in self.opted_out)


def may_discard(family: Family) -> bool:
    """A teamspace fact, or what may be one, is not discarded, whoever opts out."""
    return family in (Family.LOCAL_ONLY, Family.DISCARDABLE)


def families(prefixes: Any, opted_out: Any) -> Families:
    """From configuration. Raises `BadRequest`."""
    known = {family.value for family in Family} - {Family.UNDECIDED.value}
    if not isinstance(prefixes, Mapping) or not all(
        isinstance(prefix, str) and prefix and name in known for prefix, name in prefixes.items()
    ):
        raise BadRequest(
            f"families maps a prefix of event types to one of {', '.join(sorted(known))}.", field="sync.families"
        )
    return Families({prefix: Family(name) for prefix, name in prefixes.items()}, texts(opted_out, "sync.opt_out"))


def texts(value: Any, field_name: str) -> frozenset[str]:
    """A list of non-empty strings. Raises `BadRequest`."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise BadRequest(f"{field_name} is a list of strings.", field=field_name)
    items = list(value)
    if not all(isinstance(item, str) and item for item in items):
        raise BadRequest(f"{field_name} is a list of non-empty strings.", field=field_name)
    return frozenset(items)
