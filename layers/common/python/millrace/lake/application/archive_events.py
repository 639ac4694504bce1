"""Archive events: write what was committed since the last time into objects, many ledgers in each, each event once.

A ledger belongs to one lane, and a lane makes one object at a time:

1. read its ledgers' cursors and what follows them in the log;
2. reserve: put the object's name and the positions it takes of each ledger into the lane's row, if nobody has changed
   that row since before step 1;
3. put the object, if its name is free;
4. move the cursors of its ledgers over what it holds;
5. clear the reservation.

Whoever finds a reservation finishes it before making another: the same positions give the same bytes under the same
name. A cursor that has moved shows that the object is there, so nothing is read again that may be pruned by then. A
reservation starts where the cursors stand, and they stand still while it exists: no position is in two objects.
docs/adr/0010-archive.md has the argument.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from millrace.lake.application.gather_archive import DEFAULT, Gathered, ObjectLimits
from millrace.lake.domain.archive import ArchiveObject, EventWriter
from millrace.lake.ports.lanes import Lane, Lanes, Reservation
from millrace.lake.ports.objects import Objects
from millrace.ledger.application.failures import Failure, Failures
from millrace.ledger.domain.consumers import ARCHIVE_CONSUMER
from millrace.ledger.domain.errors import Contention, Unavailable
from millrace.ledger.domain.names import Ledger, bucket_end
from millrace.ledger.domain.page import Event, contiguous
from millrace.ledger.ports import Log, Run, State, Together

LANES = 4
"""Never to be changed while a reservation exists: a ledger must not be in two lanes."""
SIDE_BY_SIDE = 16
MAX_TURNS = 50


@dataclass(slots=True)
class Archived:
    """What a run did. `left`: ledgers it had no time for."""

    objects: int = 0
    events: int = 0
    lost: int = 0
    """Positions that were pruned before they could be archived."""
    left: list[Ledger] = field(default_factory=list)


def lane_of(ledger: str) -> int:
    return zlib.crc32(ledger.encode()) % LANES


@dataclass(frozen=True, slots=True)
class ArchiveEvents:
    log: Log
    state: State
    lanes: Lanes
    objects: Objects
    together: Together
    pause: Callable[[int], None]
    may_go_on: Callable[[], bool]
    limits: ObjectLimits = DEFAULT

    def __call__(self, ledgers: Iterable[Ledger]) -> Archived:
        """Archive these ledgers up to their heads."""
        done = Archived()
        by_lane: dict[int, list[Ledger]] = {}
        for ledger in ledgers:
            by_lane.setdefault(lane_of(ledger.name), []).append(ledger)
        failures = Failures()
        for number, ledgers_of_lane in by_lane.items():
            try:
                self._drain(number, ledgers_of_lane, done)
            except Unavailable as error:
                failures.found.append(Failure("lane", str(number), error))  # no lane waits for another
            except Exception:  # noqa: BLE001 - a ledger that cannot be archived: its neighbours go without it
                for ledger in ledgers_of_lane:
                    failures.around("archive", ledger.name, partial(self._drain, number, [ledger], done), None)
        failures.raise_first()
        return done

    def _drain(self, number: int, todo: list[Ledger], done: Archived) -> None:
        lost_turns = 0
        while todo:
            if not self.may_go_on():
                done.left.extend(todo)
                return
            lane = self.lanes.load(number)
            if lane.reservation is not None:
                self._finish(number, lane, lane.reservation, None)
                continue
            gathered, rest = self._gather(todo)
            if not gathered.spans:
                return
            made = gathered.written()
            reservation = Reservation(made.name if made else "", gathered.spans, made.events if made else 0)
            reserved = Lane(lane.version + 1, reservation)
            if not self.lanes.store(number, reserved):
                lost_turns += 1
                if lost_turns > MAX_TURNS:
                    raise Contention("Other archivers keep taking this lane; its ledgers are archived later.")
                self.pause(lost_turns)
                continue
            self._finish(number, reserved, reservation, made)
            done.objects += made is not None
            done.events += reservation.events
            done.lost += gathered.count - reservation.events
            todo = rest

    def _gather(self, ledgers: Sequence[Ledger]) -> tuple[Gathered, list[Ledger]]:
        """What follows the cursors, as much as one object takes; and the ledgers that may have more."""
        gathered = Gathered(self.limits)
        frontier: list[tuple[Ledger, int | None]] = [(ledger, None) for ledger in ledgers]
        while frontier:
            side_by_side, frontier = frontier[:SIDE_BY_SIDE], frontier[SIDE_BY_SIDE:]
            runs = self.together([partial(self._read, ledger, after) for ledger, after in side_by_side])
            for number, ((ledger, _), (after, run)) in enumerate(zip(side_by_side, runs, strict=True)):
                end = after
                for page in contiguous(run.pages, after):
                    if not gathered.take(ledger, page):
                        return gathered, [one for one, _ in (*side_by_side[number:], *frontier)]
                    end = page.end
                if end > after and (run.more or end == bucket_end(end)):
                    frontier.append((ledger, end))
        return gathered, []

    def _read(self, ledger: Ledger, after: int | None) -> tuple[int, Run]:
        if after is None:
            after = self._cursor(ledger)
        return after, self.log.read(ledger, after)

    def _cursor(self, ledger: Ledger) -> int:
        return self.state.marks(ledger).cursors.get(ARCHIVE_CONSUMER, 0)

    def _finish(self, number: int, lane: Lane, reservation: Reservation, made: ArchiveObject | None) -> None:
        """Safe to do again, by anyone, from any step on."""
        spans = {Ledger.to_read(name): span for name, span in reservation.spans.items()}
        if made is not None:
            self.objects.put(reservation.name, made.data)
        elif reservation.events and not self._is_there(spans) and not self._put_again(number, lane, reservation):
            return
        self._all([partial(self._move, ledger, first, last) for ledger, (first, last) in spans.items()])
        self.lanes.store(number, Lane(lane.version + 1))

    def _is_there(self, spans: Mapping[Ledger, tuple[int, int]]) -> bool:
        """A cursor moves only once the object is put."""
        cursors = self._all([partial(self._cursor, ledger) for ledger in spans])
        return any(cursor >= last for cursor, (_, last) in zip(cursors, spans.values(), strict=True))

    def _put_again(self, number: int, lane: Lane, reservation: Reservation) -> bool:
        """Make the reserved object from the log; False if somebody finished it meanwhile."""
        writer = EventWriter()
        for name, (first, last) in reservation.spans.items():
            for event in self._events(Ledger.to_read(name), first, last):
                if event.record.body is not None:
                    writer.add(name, event)
        if len(writer) != reservation.events:
            if self.lanes.load(number).version != lane.version:
                return False  # its cursors moved, so that retention could prune what we were reading
            raise Unavailable("The log does not show all that was reserved for the archive.", object=reservation.name)
        self.objects.put(reservation.name, writer.finish().data)
        return True

    def _events(self, ledger: Ledger, first: int, last: int) -> Iterable[Event]:
        at = first - 1
        while at < last:
            pages = list(contiguous(self.log.read(ledger, at).pages, at))
            if not pages:
                return
            for page in pages:
                if page.end <= last:
                    yield from page.events()
            at = pages[-1].end

    def _move(self, ledger: Ledger, first: int, last: int) -> None:
        self.state.move_cursor(ledger, ARCHIVE_CONSUMER, first - 1, last)

    def _all(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        groups = (calls[at : at + SIDE_BY_SIDE] for at in range(0, len(calls), SIDE_BY_SIDE))
        return [answer for group in groups for answer in self.together(group)]
