"""What happened in a run of announced changes: who said and asked what, what they were told, and what was committed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from millrace.ledger.domain.names import split_key
from millrace.streams.application.emit import Result
from millrace.streams.application.markers import marker_group
from millrace.streams.domain.errors import SdkError
from millrace.streams.domain.transition import ENDS
from millrace.streams.ports import VersionedRow
from tests.simulation.rows import RecordedLog, Version

TENANT, RUNTIME = "t", "r"
MARKERS = marker_group(TENANT, RUNTIME)


@dataclass(frozen=True, slots=True)
class Said:
    """An event that was emitted in a batch, and the answer."""

    stream: str
    event: dict[str, Any]
    batch: Sequence[dict[str, Any]]
    result: Result
    sent: int
    answered: int

    @property
    def stored(self) -> dict[str, Any]:
        """As its readers see it, if it is committed."""
        return {**self.event, "runtime_id": RUNTIME, "stream_id": self.stream}


@dataclass(slots=True)
class Asked:
    """A marker write; its client is its own, so that what it changed is known. No answer: nobody knows."""

    kind: str
    marker_id: str
    expected: int
    number: int
    sent: int
    answer: dict[str, Any] | SdkError | None = None
    answered: int = 0

    @property
    def client_id(self) -> str:
        return f"w{self.number}"


@dataclass(frozen=True, slots=True)
class Listed:
    """All pages of a marker list."""

    records: Sequence[dict[str, Any]]
    sent: int
    answered: int


@dataclass(frozen=True, slots=True)
class Told:
    """A committed event."""

    step: int
    stream: str
    position: int
    event: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.event["event_id"])

    @property
    def to(self) -> str:
        return str(self.event["payload"]["to"])


@dataclass(slots=True)
class Story:
    sent_is_terminal: bool
    said: list[Said] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    listed: list[Listed] = field(default_factory=list)

    def is_terminal(self, state: str) -> bool:
        return state in ENDS or (state == "sent" and self.sent_is_terminal)


def committed(log: RecordedLog) -> Iterator[Told]:
    """Every event, in the order in which they were committed, over all streams."""
    for step, name, first in log.order:
        for event in log.pages[name][first].events():
            assert event.record.body is not None
            yield Told(step, split_key(name)[-1], event.position, json.loads(event.record.body))


def current_between(versions: Sequence[Version], sent: int, answered: int) -> list[VersionedRow | None]:
    """Every version that was the latest at some time of a request; None is before the first."""
    begins = [0, *(version.step for version in versions)]
    ends = [*(version.step for version in versions), answered]
    stood: list[VersionedRow | None] = [None, *(version.row for version in versions)]
    return [row for begin, end, row in zip(begins, ends, stood, strict=True) if begin <= answered and end >= sent]
