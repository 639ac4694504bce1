"""Archive files: gzipped lines of JSON, each an event's exact text and what is known of it; verified once written."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from millrace.ledger.domain.errors import Unavailable
from millrace_client.journal.ports import ArchivedEvent


@dataclass(frozen=True, slots=True)
class ArchiveFolder:
    """The same events always make the same file, so an archive that was cut short is simply made again."""

    folder: Path

    def write(self, events: Sequence[ArchivedEvent]) -> str:
        content = gzip.compress(b"".join(_line(event) for event in events), 6, mtime=0)
        first, last = events[0].retained.position, events[-1].retained.position
        name = f"events-{first:012}-{last:012}-{hashlib.sha256(content).hexdigest()[:12]}.jsonl.gz"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            part = self.folder / f"{name}.part"
            _write_durably(part, content)
            _verify(part, events)
            part.rename(self.folder / name)
            _sync_folder(self.folder)
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise Unavailable(f"The archive file could not be written and verified: {error}") from error
        return str(self.folder / name)

    def read(self, where: str) -> Mapping[str, bytes]:
        """Where it was written, or, if the folder was moved, by its name in this folder."""
        file = Path(where) if Path(where).is_file() else self.folder / Path(where).name
        try:
            return dict(read(file))
        except FileNotFoundError as error:
            raise Unavailable(f"There is no {file.name} at its place or in {self.folder}.") from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zlib.error) as error:
            raise Unavailable(f"The archive file cannot be read: {error}") from error


def read(file: Path) -> Iterator[tuple[str, bytes]]:
    """The events of an archive file: id and exact bytes."""
    with gzip.open(file, "rb") as lines:
        for line in lines:
            entry = json.loads(line)
            yield entry["event_id"], entry["event"].encode()


def _line(event: ArchivedEvent) -> bytes:
    about = event.retained
    entry = {
        "event_id": about.event_id,
        "event_type": about.event_type,
        "position": about.position,
        "captured_ms": about.captured_ms,
        "event": event.body.decode(),
    }
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


def _write_durably(file: Path, content: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def _verify(file: Path, events: Sequence[ArchivedEvent]) -> None:
    if list(read(file)) != [(event.retained.event_id, event.body) for event in events]:
        raise ValueError("what was read back differs from what was written")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
