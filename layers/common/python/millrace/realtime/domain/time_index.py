"""The time index: where the events of a session are, in (`ts`, `eventId`) order (R6).

It is made of whole buckets of the log, and what is written for a bucket follows from the log alone: two indexers write
the same. The places of a bucket's events are sorted and cut into rows. A row is found by its last instant, among rows
of about its own width: who reads on from a place knows by the width when no further row has anything earlier.

Beside its rows a bucket has a note: the widths that there are up to there, the latest place, and the events that came
late, that is after one with a later place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from millrace.realtime.domain.time_order import Place

ROW_HITS = 64
"""Of one row: about 4 KB."""
LATE_HITS = 32
"""A note names so many late events. Of more it only says between which places they are."""
SECOND = 1_000_000_000
STEP = 4
"""Each width is so many times the one before; the first is a second."""
WIDE = 4
"""A row that would be so many times as wide as most rows of its bucket is cut: nearly all are of one width then."""


@dataclass(frozen=True, slots=True)
class TimeHit:
    """An indexed event: its place, its position, the first position of its page, and the bytes of its body."""

    place: Place
    position: int
    page: int
    size: int


@dataclass(frozen=True, slots=True)
class TimeRow:
    """Events of one bucket that follow each other in time order."""

    hits: Sequence[TimeHit]

    @property
    def last(self) -> TimeHit:
        return self.hits[-1]

    @property
    def top(self) -> int:
        """The greatest position in it."""
        return max(hit.position for hit in self.hits)

    @property
    def width(self) -> int:
        """Which of the widths it has."""
        return width_of(self.last.place[0] - self.hits[0].place[0])


@dataclass(frozen=True, slots=True)
class LateEvents:
    """Events of a bucket that came after one with a later place: how many, and between which places. If they are few,
    `hits` has the place and the position of each."""

    count: int = 0
    first: Place = (0, "")
    last: Place = (0, "")
    hits: Sequence[tuple[Place, int]] = ()

    @property
    def named(self) -> bool:
        return len(self.hits) == self.count


@dataclass(frozen=True, slots=True)
class BucketNote:
    """Of the bucket with this number. It stands when the rows of all buckets up to it do."""

    bucket: int
    widths: frozenset[int]
    latest: Place | None
    late: LateEvents


@dataclass(slots=True)
class FirstHits:
    """The first `limit` hits after a place. The same hit may be added twice."""

    after: Place | None
    limit: int
    own: int | None = None
    """The position of the event at the place itself."""
    kept: list[TimeHit] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.kept) == self.limit

    def add(self, hit: TimeHit) -> None:
        if self.after is not None and hit.place <= self.after:
            self.own = hit.position if hit.place == self.after else self.own
            return
        if self.full and hit.place >= self.kept[-1].place:
            return
        at = bisect_left(self.kept, hit.place, key=lambda one: one.place)
        if at == len(self.kept) or self.kept[at].place != hit.place:
            self.kept.insert(at, hit)
            del self.kept[self.limit :]


def width_of(nanoseconds: int) -> int:
    width = 0
    while nanoseconds > reach(width):
        width += 1
    return width


def reach(width: int) -> int:
    """How long a row of this width is at most, in nanoseconds."""
    return SECOND * int(STEP**width)


def indexed(bucket: int, hits: Sequence[TimeHit], before: BucketNote | None) -> tuple[list[TimeRow], BucketNote]:
    """The rows and the note of a bucket. `hits` is what is retained of it, in order of positions."""
    latest, late = before.latest if before else None, list[tuple[Place, int]]()
    for hit in hits:
        if latest is not None and hit.place < latest:
            late.append((hit.place, hit.position))
        else:
            latest = hit.place
    rows = list(_rows(sorted(hits, key=lambda hit: hit.place)))
    widths = (before.widths if before else frozenset()) | {row.width for row in rows}
    return rows, BucketNote(bucket, widths, latest, _late(late))


def _late(hits: Sequence[tuple[Place, int]]) -> LateEvents:
    if not hits:
        return LateEvents()
    places = [place for place, _ in hits]
    return LateEvents(len(hits), min(places), max(places), tuple(hits) if len(hits) <= LATE_HITS else ())


def _rows(hits: Sequence[TimeHit]) -> Iterator[TimeRow]:
    """Rows of as many hits as go into one, cut where a hit is far from its neighbours."""
    plain = [hits[start : start + ROW_HITS] for start in range(0, len(hits), ROW_HITS)]
    widest = WIDE * max(SECOND, median(_length(row) for row in plain)) if plain else 0
    row = list[TimeHit]()
    for hit in hits:
        if row and (len(row) == ROW_HITS or _length([row[0], hit]) > widest):
            yield TimeRow(row)
            row = []
        row.append(hit)
    if row:
        yield TimeRow(row)


def _length(hits: Sequence[TimeHit]) -> int:
    return hits[-1].place[0] - hits[0].place[0]


def passed_over(late: Iterable[tuple[Place, int]], at: Place, after: int) -> int:
    """How many of these lie before a place and came after a position."""
    return sum(place < at and position > after for place, position in late)
