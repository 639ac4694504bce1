"""A replay: which events of a ledger a target is to be sent again, even those that it has (D4, D6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millrace.delivery.domain.bulk import MOST_MS
from millrace.delivery.domain.families import Family
from millrace.delivery.domain.states import OPEN, Delivery
from millrace.delivery.domain.targets import Target
from millrace.lake.domain.retention_rules import Scope, check_scope
from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.kinds import kind_of

FIELDS: Mapping[str, type] = {
    "contract": str,
    "scope": str,
    "from_position": int,
    "to_position": int,
    "until_ms": int,
    "dry_run": bool,
}
NEEDED = ("contract", "scope", "from_position", "to_position")
MOST_POSITION = 2**53 - 1


@dataclass(frozen=True, slots=True)
class WantedRange:
    """Positions `first`..`last`, of them those that were last tried at `until_ms` or before, or never."""

    first: int
    last: int
    until_ms: int = MOST_MS

    def takes(self, target: Target, kind: str, before: Delivery | None, now_ms: int) -> bool:
        """Whether an event of this type is to be sent again. What is due already is left as it is, and so is what was
        pruned, which has no type any more."""
        if not kind or not target.wants(kind, Family.TEAMSPACE):
            return False
        if before is None:
            return True
        is_due = before.status in OPEN and (before.next_ms or 0) <= now_ms
        return not is_due and before.last_ms <= self.until_ms


@dataclass(frozen=True, slots=True)
class RangeReplay:
    scope: Scope
    wanted: WantedRange
    dry_run: bool = False


def check_replay(tenant: str, body: Any) -> RangeReplay:
    """Raises `BadRequest`, naming the field."""
    if not isinstance(body, dict):
        raise BadRequest("The body must be an object.", field="body", value_class=kind_of(body))
    given = {name: value for name, value in body.items() if value is not None}
    for name, value in given.items():
        if name not in FIELDS:
            raise BadRequest(f"A replay has the fields {', '.join(FIELDS)} and no other.", field=str(name)[:64])
        if not isinstance(value, FIELDS[name]) or (FIELDS[name] is int and isinstance(value, bool)):
            raise BadRequest(f"{name} has the wrong type.", field=name, value_class=kind_of(value))
    for name in NEEDED:
        if name not in given:
            raise BadRequest(f"{name} is missing.", field=name)
    scope = check_scope(tenant, given["contract"], given["scope"])
    if scope.is_pattern:
        raise BadRequest("scope must name one ledger; it must not end in *.", field="scope")
    first, last = (_number(given, name, 1, MOST_POSITION) for name in ("from_position", "to_position"))
    if last < first:
        raise BadRequest("to_position must not be below from_position.", field="to_position")
    until_ms = _number(given, "until_ms", 0, MOST_MS) if "until_ms" in given else MOST_MS
    return RangeReplay(scope, WantedRange(first, last, until_ms), given.get("dry_run", False))


def _number(given: Mapping[str, Any], name: str, low: int, high: int) -> int:
    value: int = given[name]
    if not low <= value <= high:
        raise BadRequest(f"{name} must be an integer from {low} to {high}.", field=name, value_class="integer")
    return value
