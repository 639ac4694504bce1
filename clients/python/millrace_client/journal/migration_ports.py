"""What migration needs: old queues and journals as sources, and a journal that takes one source at a time (D10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from millrace.delivery.domain.events import Captured
from millrace.delivery.domain.families import Families, Family
from millrace.delivery.domain.states import Delivery


@dataclass(frozen=True, slots=True)
class OldQueue:
    """An old queue or journal. `scope` is what its name gives away: the digest, or empty. No URL or team is made up
    from it."""

    path: str
    scope: str
    is_journal: bool = False


@dataclass(frozen=True, slots=True)
class Queued:
    """A row of an old queue or journal, as it stands there. `deliveries`: what it has been through, by the target's id
    there."""

    event_id: str
    event_type: str
    data: bytes
    timestamp: str
    retry_count: int
    deliveries: Mapping[str, Delivery] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contents:
    queued: Sequence[Queued]
    body_uploads: int
    body_upload_failures: int


class Sources(Protocol):
    def find(self) -> Iterable[OldQueue]:
        """Every old queue and journal there is, not only the active one."""

    def strangers(self) -> Sequence[str]:
        """The files beside them that are none by their name, and are left alone."""

    def read(self, source: OldQueue) -> Contents:
        """As of one moment, changing nothing. Raises `Unavailable` if it is locked, `Rejected` if it is corrupt."""

    def clean(self, source: OldQueue, queued: Sequence[Queued]) -> int:
        """Delete these rows from an old queue, together, if they still are as given; its body uploads stay."""


@dataclass(frozen=True, slots=True)
class Import:
    """A row that can be imported, with its provenance."""

    event: Captured
    family: Family
    timestamp: str
    retry_count: int
    deliveries: Mapping[str, Delivery] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that cannot: why, and its bytes, so that nothing is lost."""

    event_id: str
    data: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """Counts of one source. `known`: there before with the same content, this source now noted beside the others."""

    fresh: int = 0
    known: int = 0
    conflicts: int = 0
    """Open ones of this source, new or not."""


@dataclass(frozen=True, slots=True)
class MigrationConflict:
    """Two contents under one id, or a row that cannot be read. `resolved`: journal, source, or empty while open."""

    event_id: str
    source: str
    reason: str
    found_ms: int
    resolved: str = ""


@dataclass(frozen=True, slots=True)
class TwoContents:
    """Both contents of a conflict. `journal` is the one it was found against; None if the journal has none."""

    conflict: MigrationConflict
    journal: bytes | None
    source: bytes


class Imports(Protocol):
    def take(self, source: OldQueue, rows: Sequence[Import], unreadable: Sequence[Unreadable], now_ms: int) -> Imported:
        """
        Import a source, all of it or nothing. The same source again changes nothing.

        An id that is there with the same content gets this source as another provenance; with other content a
        conflict is written, unless it was resolved, and the journal's bytes stay. Deliveries are kept under the name of
        a target that nobody knows.
        """

    def conflicts(self) -> Sequence[MigrationConflict]:
        """The open ones, oldest first."""

    def compare(self, event_id: str) -> Sequence[TwoContents]:
        """All conflicts of an event, the settled ones too, oldest first, each with both contents."""

    def resolve(self, event_id: str, keep: str, source: str | None, families: Families, now_ms: int) -> int:
        """
        Settle an event's open conflicts; returns how many. Raises `NotFound` without one.

        `journal` settles all of them. `source` puts one source's content into the journal, in the family of its type:
        raises `Conflict` if that content cannot be read, if several sources have one and none is named, or if an
        attempt to deliver the journal's has begun. What is not kept stays under the conflict.
        """
