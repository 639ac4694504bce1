"""Retention (C8, S13): which events of a ledger may go. The hub and the jobs both ask this; jobs for whole tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from millrace.ledger.domain.errors import BadRequest
from millrace.ledger.domain.kinds import kind_of

WHOLE = ""
"""In place of a partition: all of them, and the one that a ledger without partitions is."""


@dataclass(frozen=True, slots=True)
class Release:
    """What a ledger lets go: up to which position each partition needs nothing any more, but nothing beyond `limit`,
    which is where the slowest reader is."""

    limit: int = 0
    watermark: int = 0
    partitions: Mapping[str, int] = field(default_factory=dict)
    """The watermarks of partitions that have one of their own, whether lower or higher."""

    def allows(self, position: int, partitions: Sequence[str]) -> bool:
        """S13: every partition that the event names has advanced past it; C8: every reader has it."""
        named = partitions or (WHOLE,)
        return position <= self.limit and all(position <= self.partitions.get(one, self.watermark) for one in named)

    @property
    def highest(self) -> int:
        """The highest of the watermarks."""
        return max([self.watermark, *self.partitions.values()])


@dataclass(frozen=True, slots=True)
class RetentionRequest:
    """What the hub lets go, as the jobs are told it. A ledger that is not named loses nothing."""

    ledgers: Mapping[str, Release] = field(default_factory=dict)

    def to_json(self) -> bytes:
        content = {name: asdict(release) for name, release in self.ledgers.items()}
        return json.dumps({"ledgers": content}, ensure_ascii=False).encode()

    @classmethod
    def parse(cls, data: bytes) -> RetentionRequest:
        """`{"ledgers": {name: {"limit", "watermark"?, "partitions"?: {name: watermark}}}}`."""
        try:
            content = json.loads(data)
        except ValueError as error:
            raise BadRequest("The retention request is not JSON.", field="request") from error
        _check_object(content, "request", ["ledgers"], ["ledgers"])
        _check_object(content["ledgers"], "ledgers")
        return cls({name: _release(one, f"ledgers.{name}") for name, one in content["ledgers"].items()})


def _release(content: Any, where: str) -> Release:
    _check_object(content, where, ["limit"], ["limit", "watermark", "partitions"])
    partitions = content.get("partitions", {})
    _check_object(partitions, f"{where}.partitions")
    for name, position in partitions.items():
        _check_position(position, f"{where}.partitions.{name}")
    for name in ("limit", "watermark"):
        _check_position(content.get(name, 0), f"{where}.{name}")
    return Release(content["limit"], content.get("watermark", 0), partitions)


def _check_object(value: Any, where: str, needed: Sequence[str] = (), known: Sequence[str] = ()) -> None:
    """`known` says what may be in it; without, anything may."""
    if not isinstance(value, dict):
        raise BadRequest(f"{where} must be an object.", field=where, value_class=kind_of(value))
    for name in needed:
        if name not in value:
            raise BadRequest(f"{where}.{name} is missing.", field=f"{where}.{name}")
    for name in value:
        if known and name not in known:
            raise BadRequest(f"{where}.{name} is unknown; known: {', '.join(known)}.", field=f"{where}.{name}")


def _check_position(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadRequest(f"{where} must be an integer from 0.", field=where, value_class=kind_of(value))
