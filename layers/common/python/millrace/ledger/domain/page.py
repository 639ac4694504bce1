"""Pages: what one commit puts into the log as a single item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, repeat

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
    """Who committed a page: the client, the connection it came in on (none over HTTP), and the call it belonged to."""

    client_id: str
    connection: str = ""
    trace: str = ""
    """The caller's `traceparent`; none if it sent none."""


@dataclass(frozen=True, slots=True)
class Part:
    """Neighbouring records of a page that one request brought: how many, from whom, and that request's nonce."""

    count: int
    origin: Origin
    nonce: bytes

    @property
    def weight(self) -> int:
        """At least what packing adds for it: a page of many small requests must fit, too."""
        origin = self.origin
        named = len(origin.client_id.encode()) + len(origin.connection.encode()) + len(origin.trace)
        return 11 + named + len(self.nonce)


@dataclass(frozen=True, slots=True)
class Page:
    """Positions `first` to `end`, immutable but for pruning, which raises `revision`."""

    first: int
    records: tuple[Record, ...]
    time_ms: int
    origin: Origin
    nonce: bytes
    revision: int = 0
    parts: tuple[Part, ...] = ()
    """Of a page that holds several requests, in order of its records. Without parts the page is one request's."""

    @property
    def end(self) -> int:
        return self.first + len(self.records) - 1

    def events(self) -> Iterator[Event]:
        for offset, (record, part) in enumerate(zip(self.records, self._brought(), strict=True)):
            yield Event(self.first + offset, record, self.time_ms, part.origin, part.nonce)

    def event(self, position: int) -> Event:
        return next(islice(self.events(), position - self.first, None))

    def _brought(self) -> Iterator[Part]:
        """For each record the part it is in."""
        for part in self.parts or (Part(len(self.records), self.origin, self.nonce),):
            yield from repeat(part, part.count)

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
    nonce: bytes = b""
    """Of the request that brought it."""


def contiguous(pages: Iterable[Page], after: int) -> Iterator[Page]:
    """The pages that follow `after` without a hole. A hole means they were read too early: stop there."""
    expected = after + 1
    for page in pages:
        if page.first != expected:
            return
        yield page
        expected = page.end + 1
