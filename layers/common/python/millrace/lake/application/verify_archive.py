"""Verify the archive against the log: every position of every ledger is there once, or the gap is named (C3).

A retained event must be in exactly one object, as it was committed. One whose body was pruned may be in none. What
lies above a ledger's archive cursor is waiting, not missing.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from millrace.lake.application.archive_findings import Held, Verified
from millrace.lake.application.quarantine import redriven
from millrace.lake.domain.archive import FOLDER, EventWriter, line_problems, read_lines
from millrace.lake.domain.wrapping import wrap
from millrace.lake.ports.objects import Objects
from millrace.ledger.application.heads import find_head
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.consumers import ARCHIVE_CONSUMER
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event
from millrace.ledger.domain.ranges import Ranges
from millrace.ledger.ports import Log, State, Together

READ_AT_ONCE = 1_000
MAX_NAMED = 100
REFILL_EVENTS = 20_000


@dataclass(frozen=True, slots=True)
class VerifyArchive:
    log: Log
    state: State
    objects: Objects
    together: Together
    tell: Callable[[str, int], None] = lambda _what, _count: None
    """Progress: `object` or `ledger`, and how many were looked at now."""

    def __call__(self, *, refill: bool = False) -> Verified:
        """Cursors are read before objects: what is archived meanwhile is not missed."""
        found = Verified()
        cursors = {ledger: self._cursor(ledger) for ledger in self.state.ledgers()}
        held: dict[str, Held] = {}
        repaired = {object_ for _, object_ in redriven(self.objects)}
        for listed in self.objects.list(FOLDER):
            if listed.name in repaired:
                found.repaired += 1
                continue
            found.objects += 1
            self._look(listed.name, held, found)
            self.tell("object", 1)
        for ledger, cursor in sorted(cursors.items(), key=lambda one: one[0].name):
            found.ledgers += 1
            self._compare(ledger, cursor, held.get(ledger.name, Held()), found)
            self.tell("ledger", 1)
        if refill and found.gaps:
            self._refill(found)
        return found

    def _cursor(self, ledger: Ledger) -> int:
        return self.state.marks(ledger).cursors.get(ARCHIVE_CONSUMER, 0)

    def _look(self, name: str, held: dict[str, Held], found: Verified) -> None:
        """Every line of an object against the log."""
        by_ledger: dict[str, dict[int, dict[str, Any]]] = {}
        try:
            fetched = self.objects.get(name)
            for line in read_lines(fetched.data) if fetched is not None else ():
                if line_problems(line) or not line.get("sequence_position"):
                    found.damaged[name] = "a line breaks the archive's format"
                    continue
                by_ledger.setdefault(line["ledger"], {})[line["sequence_position"]] = line
                held.setdefault(line["ledger"], Held()).add(line["sequence_position"])
                found.events += 1
        except (OSError, EOFError, ValueError, zlib.error) as error:
            found.damaged[name] = f"cannot be read ({type(error).__name__})"
        if not by_ledger:
            found.damaged.setdefault(name, "holds no event")
        for ledger, lines in by_ledger.items():
            self._check(ledger, lines, held[ledger], name, found)

    def _check(
        self, ledger: str, lines: Mapping[int, Mapping[str, Any]], held: Held, name: str, found: Verified
    ) -> None:
        left = set(lines)
        for event in self._events(Ledger.to_read(ledger), min(lines), max(lines)):
            if event.position in left:
                left.discard(event.position)
                if event.record.body is not None and not _says_what_was_committed(ledger, event, lines[event.position]):
                    held.different.append(event.position)
        if left:
            found.damaged[name] = "holds positions that its ledger does not have"

    def _compare(self, ledger: Ledger, cursor: int, held: Held, found: Verified) -> None:
        found.waiting += max(0, find_head(self.log, ledger, cursor) - cursor)
        for into, positions in ((found.repeated, held.repeated()), (found.different, Ranges.of(held.different))):
            if positions:
                into[ledger.name] = positions
        gaps = []
        for first, last in held.missing(cursor):
            for event in self._events(ledger, first, last):
                if event.record.body is None:
                    found.pruned += 1
                else:
                    gaps.append(event.position)
        if gaps:
            found.gaps[ledger.name] = Ranges.of(gaps)

    def _refill(self, found: Verified) -> None:
        """Put what is missing into objects of its own."""
        writer = EventWriter()
        for ledger, positions in found.gaps.items():
            for first, last in positions:
                for event in self._events(Ledger.to_read(ledger), first, last):
                    if event.record.body is not None:
                        writer.add(ledger, event)
                    if len(writer) >= REFILL_EVENTS:
                        found.refilled.append(self._put(writer))
                        writer = EventWriter()
        if len(writer):
            found.refilled.append(self._put(writer))

    def _put(self, writer: EventWriter) -> str:
        """Under a name that was never used: a damaged object may still have the one these positions give."""
        for number in range(1, MAX_NAMED):
            made = writer.finish(salt=f"refill {number}")
            if self.objects.put(made.name, made.data):
                return made.name
            there = self.objects.get(made.name)
            if there is not None and there.data == made.data:
                return made.name
        raise RuntimeError("a hundred objects of one name, all of them wrong")

    def _events(self, ledger: Ledger, first: int, last: int) -> Iterator[Event]:
        read, at = ReadLog(self.log, self.together), first - 1
        while at < last:
            pages = read(ledger, at, last, READ_AT_ONCE)
            if not pages:
                return
            for page in pages:
                yield from (event for event in page.events() if at < event.position <= last)
                at = max(at, page.end)


def _says_what_was_committed(ledger: str, event: Event, line: Mapping[str, Any]) -> bool:
    """Whether a line says what was committed."""
    envelope = wrap(ledger, event.record, event.position, event.time_ms)
    expected = {
        "idempotency_key": envelope.idempotency_key,
        "event_type": envelope.event_type,
        "event_version": envelope.event_version,
        "committed_at": event.time_ms,
        "partitions": list(event.record.partitions),
        "payload": json.loads(envelope.payload),
    }
    return all(line.get(name) == value for name, value in expected.items())
