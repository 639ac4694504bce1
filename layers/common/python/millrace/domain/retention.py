"""Retention (C8, S13): policies, and the rule by which one event may go. Jobs compute the same over whole tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millrace.domain.errors import BadRequest
from millrace.domain.sync_submit import kind_of

IMPLICIT = ""
"""The one partition of an event that names none."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a ledger, or one of its partitions, may lose: up to a position, beyond an age, beyond a number of events.

    Without a partition it holds for each of the ledger's that has no policy of its own. Of several that apply, the one
    that frees most counts.
    """

    ledger: str
    partition: str | None = None
    advance_to: int | None = None
    max_age_days: int | None = None
    max_events: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """`ceilings`: per ledger the lowest position of the archive, the index, fan-out and every known target.

    A ledger without a ceiling or without a policy loses nothing.
    """

    policies: Sequence[Policy] = ()
    ceilings: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes) -> Request:
        """`{"policies": [{"ledger", "partition"?, "advance_to"?, "max_age_days"?, "max_events"?}], "ceilings": {}}`."""
        try:
            content = json.loads(data)
        except ValueError as error:
            raise BadRequest("The retention request is not JSON.", field="request") from error
        if not isinstance(content, dict) or set(content) != {"policies", "ceilings"}:
            raise BadRequest("A retention request has policies and ceilings, nothing else.", field="request")
        policies, ceilings = content["policies"], content["ceilings"]
        if not isinstance(policies, list) or not isinstance(ceilings, dict):
            raise BadRequest("policies must be a list, ceilings an object.", field="request")
        for ledger, position in ceilings.items():
            _check_number(position, f"ceilings.{ledger}")
        return cls([_policy(one, f"policies[{number}]") for number, one in enumerate(policies)], ceilings)


def may_go(partitions: Sequence[str], position: int, watermarks: Mapping[str, int], limit: int) -> bool:
    """S13: every partition it names has advanced past it; C8: nobody behind `limit` still needs it."""
    named = partitions or [IMPLICIT]
    return position <= limit and all(watermarks.get(partition, 0) >= position for partition in named)


def watermarks(
    events: Sequence[tuple[int, Sequence[str], int]], policies: Sequence[Policy], now_ms: int
) -> dict[str, int]:
    """Of one ledger's events (position, partitions, commit time): how far each partition has advanced."""
    held: dict[str, list[tuple[int, int]]] = {}
    for position, partitions, time_ms in sorted(events):
        for partition in partitions or [IMPLICIT]:
            held.setdefault(partition, []).append((position, time_ms))
    marks: dict[str, int] = {}
    for partition, rows in held.items():
        own = [policy for policy in policies if policy.partition == partition]
        for policy in own or [policy for policy in policies if policy.partition is None]:
            marks[partition] = max(marks.get(partition, 0), _mark(policy, rows, now_ms))
    return marks


def _mark(policy: Policy, rows: Sequence[tuple[int, int]], now_ms: int) -> int:
    """Of one partition's rows in order. By age, it stops before the first event that is still young."""
    mark = policy.advance_to or 0
    if policy.max_age_days is not None:
        young = [position for position, time_ms in rows if time_ms >= now_ms - policy.max_age_days * 86_400_000]
        mark = max(mark, young[0] - 1 if young else rows[-1][0])
    if policy.max_events is not None and len(rows) > policy.max_events:
        mark = max(mark, rows[-policy.max_events - 1][0])
    return mark


def _policy(content: Any, where: str) -> Policy:
    if not isinstance(content, dict):
        raise BadRequest(f"{where} must be an object.", field=where, value_class=kind_of(content))
    known = set(Policy.__slots__)
    if unknown := sorted(set(content) - known):
        raise BadRequest(f"{where}.{unknown[0]} is unknown.", field=f"{where}.{unknown[0]}")
    if not isinstance(content.get("ledger"), str) or not content["ledger"]:
        raise BadRequest(f"{where}.ledger must be a non-empty string.", field=f"{where}.ledger")
    if not isinstance(content.get("partition", ""), str | None):
        raise BadRequest(f"{where}.partition must be a string.", field=f"{where}.partition")
    for name in ("advance_to", "max_age_days", "max_events"):
        if content.get(name) is not None:
            _check_number(content[name], f"{where}.{name}")
    return Policy(**content)


def _check_number(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadRequest(f"{where} must be an integer from 0.", field=where, value_class=kind_of(value))
