"""Collect: drop the bytes that every target has (gc), or that are safe in a verified file (archive). Nothing else does.

History and provenance stay: an event's row, its digest, its deliveries and where it came from (D3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from millrace_client.journal.ports import ArchivedEvent, ArchiveFile, Payloads, Retained

CHUNK = 500
CHUNK_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Collected:
    events: int = 0
    size: int = 0
    files: Sequence[str] = ()


def delivered_everywhere(event: Retained) -> bool:
    """Success or duplicate at every known target that wants it, and at one at least."""
    return bool(event.deliveries) and all(
        delivery is not None and delivery.delivered for delivery in event.deliveries.values()
    )


def may_archive(event: Retained) -> bool:
    """Delivered everywhere, or wanted nowhere: what is still to be delivered stays."""
    return not event.deliveries or delivered_everywhere(event)


@dataclass(frozen=True, slots=True)
class Gc:
    payloads: Payloads
    clock: Callable[[], int]
    progress: Callable[[int], None] = lambda _: None

    def __call__(self, *, dry_run: bool = False) -> Collected:
        events = size = 0
        for chunk in _chunks(filter(delivered_everywhere, self.payloads.retained())):
            if not dry_run:
                self.payloads.remove([event.position for event in chunk], "gc", "", self.clock())
            events += len(chunk)
            size += sum(event.size for event in chunk)
            self.progress(len(chunk))
        return Collected(events, size)


@dataclass(frozen=True, slots=True)
class Archive:
    payloads: Payloads
    file: ArchiveFile
    clock: Callable[[], int]
    progress: Callable[[int], None] = lambda _: None

    def __call__(self, *, before_ms: int | None = None, dry_run: bool = False) -> Collected:
        """A file per chunk, each verified before the bytes in it are removed here."""
        wanted = (
            event
            for event in self.payloads.retained()
            if may_archive(event) and (before_ms is None or event.captured_ms < before_ms)
        )
        events, size, files = 0, 0, list[str]()
        for chunk in _chunks(wanted):
            if not dry_run:
                files.append(self._store(chunk))
            events += len(chunk)
            size += sum(event.size for event in chunk)
            self.progress(len(chunk))
        return Collected(events, size, files)

    def _store(self, chunk: Sequence[Retained]) -> str:
        positions = [event.position for event in chunk]
        bodies = self.payloads.bodies(positions)
        name = self.file.write([ArchivedEvent(event, bodies[event.position]) for event in chunk])
        self.payloads.remove(positions, "archive", name, self.clock())
        return name


def _chunks(events: Iterable[Retained]) -> Iterator[list[Retained]]:
    """So many at a time that their bytes fit in memory."""
    chunk, size = list[Retained](), 0
    for event in events:
        if chunk and (len(chunk) >= CHUNK or size + event.size > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(event)
        size += event.size
    if chunk:
        yield chunk
