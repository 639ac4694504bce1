"""Pages: what one commit puts into the log as a single item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

MAX_PAGE_BYTES = 350_000
"""Of packed records; DynamoDB takes items of 400 KB."""
RECORD_OVERHEAD = 64
"""More than packing adds to one record beside its id, partitions and body."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An event on its way in. `body` is canonical JSON that the core never looks into."""

    id: str
    digest: bytes
    body: bytes
    partitions: tuple[str, ...] = ()

    @property
    def weight(self) -> int:
        return (
            RECORD_OVERHEAD + len(self.id.encode()) + sum(2 + len(p.encode()) for p in self.partitions) + len(self.body)
        )


@dataclass(frozen=True, slots=True)
class Record:
    """A committed event inside its page. A pruned one has lost its body, never its id, digest or partitions."""

    id: str
    digest: bytes
    body: bytes | None
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Who committed a page: the client, and the connection it came in on (none over HTTP)."""

    client_id: str
    connection: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Positions `first` to `end`, immutable but for pruning, which raises `revision`."""

    first: int
    records: tuple[Record, ...]
    time_ms: int
    origin: Origin
    nonce: bytes
    revision: int = 0

    @property
    def end(self) -> int:
        return self.first + len(self.records) - 1

    def events(self) -> Iterator[Event]:
        for offset, record in enumerate(self.records):
            yield Event(self.first + offset, record, self.time_ms, self.origin)

    def emptied(self, positions: Iterable[int]) -> Page:
        """The same page without the bodies at `positions`."""
        gone = set(positions)
        records = tuple(
            replace(record, body=None) if self.first + offset in gone else record
            for offset, record in enumerate(self.records)
        )
        return replace(self, records=records, revision=self.revision + 1)


@dataclass(frozen=True, slots=True)
class Event:
    """A committed event as a reader meets it."""

    position: int
    record: Record
    time_ms: int
    origin: Origin


def contiguous(pages: Iterable[Page], after: int) -> Iterator[Page]:
    """The pages that follow `after` without a hole. A hole means they were read too early: stop there."""
    expected = after + 1
    for page in pages:
        if page.first != expected:
            return
        yield page
        expected = page.end + 1
