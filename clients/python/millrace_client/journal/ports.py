"""What the journal's use cases need: a place to keep events, their bytes and ways to remove them, and counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from millrace.delivery.domain.events import Captured
from millrace.delivery.domain.families import Family
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.domain.targets import Target, TargetState
from millrace.delivery.ports.deliveries import Audits


@dataclass(frozen=True, slots=True)
class Taken:
    """`fresh` is False for an event that was there before. `superseded`: the event it replaced."""

    event_id: str
    fresh: bool
    superseded: str | None = None


class Journal(Audits, Protocol):
    """Where events are durable before any gate is looked at (D2, D3)."""

    def capture(self, events: Sequence[tuple[Captured, Family]], now_ms: int) -> Sequence[Taken]:
        """Keep all of them, or none; on the disk when it returns. Raises `Conflict` for an id with other content."""


@dataclass(frozen=True, slots=True)
class Retained:
    """An event that still has its bytes. `deliveries`: per known target that wants it; of a superseded event, those of
    the event that took its place."""

    position: int
    event_id: str
    event_type: str
    captured_ms: int
    size: int
    superseded: bool
    deliveries: Mapping[str, Delivery | None]


class Payloads(Protocol):
    """The bytes of captured events, and the only ways they go."""

    def retained(self) -> Iterator[Retained]:
        """In order of position."""

    def bodies(self, positions: Sequence[int]) -> Mapping[int, bytes]:
        """The exact bytes as captured."""

    def remove(self, positions: Sequence[int], how: str, where: str, now_ms: int) -> None:
        """Drop the bytes of all of these events, or none; everything that is known about them stays."""


@dataclass(frozen=True, slots=True)
class ArchivedPayload:
    """An event whose bytes are in the file `where`."""

    position: int
    event_id: str
    size: int
    digest: bytes
    where: str


class Archives(Protocol):
    """The bytes that were archived, and the way back."""

    def archived(self) -> Sequence[ArchivedPayload]:
        """In order of position."""

    def restore(self, bodies: Mapping[int, bytes], where: str, now_ms: int) -> None:
        """Put the bytes of all of these events back, or none, with an audit row. Targets that lack them get them."""


@dataclass(frozen=True, slots=True)
class JournalCounts:
    """`captured` is all there ever was; of these `retained` still have their bytes."""

    captured: int = 0
    retained: int = 0
    retained_bytes: int = 0
    superseded: int = 0
    local_only: int = 0
    archived: int = 0
    oldest_ms: int | None = None
    """When the oldest of the retained ones was captured."""


@dataclass(frozen=True, slots=True)
class TargetCounts:
    """A known target, how many deliveries it has in each status, and how many events wait for a first attempt, or
    would, were they not archived."""

    target: Target
    state: TargetState
    statuses: Mapping[Status, int]
    unattempted: int
    archived: int = 0


class Overview(Protocol):
    """What status counts. It may read all that is stored."""

    def journal(self) -> JournalCounts:
        """The journal's events."""

    def targets(self) -> Sequence[TargetCounts]:
        """Every known target, the paused ones too."""


@dataclass(frozen=True, slots=True)
class ArchivedEvent:
    """One event in an archive file."""

    retained: Retained
    body: bytes


class ArchiveFile(Protocol):
    def write(self, events: Sequence[ArchivedEvent]) -> str:
        """Write the events, read them back, compare; returns the file's name once it is durable. Raises
        `Unavailable`."""

    def read(self, where: str) -> Mapping[str, bytes]:
        """The events of a file, by id, byte for byte. Raises `Unavailable`."""
