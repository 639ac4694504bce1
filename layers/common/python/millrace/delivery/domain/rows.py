"""How stored runs of deliveries change: which rows are new, and into what an old one is cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from millrace.delivery.domain.ranges import Range, fold
from millrace.delivery.domain.states import DELIVERED, OPEN, Delivery


@dataclass(frozen=True, slots=True)
class Row:
    """A stored run. It is filed under its last position, which it keeps for ever; `version` counts its changes."""

    run: Range
    version: int


@dataclass(frozen=True, slots=True)
class Cut:
    """An old row and the runs that take its place; the last of them ends where the old one ended."""

    old: Row
    runs: Sequence[Range]


@dataclass(frozen=True, slots=True)
class Changes:
    fresh: Sequence[Range]
    cuts: Sequence[Cut]

    @property
    def runs(self) -> list[Range]:
        return [*self.fresh, *(run for cut in self.cuts for run in cut.runs)]


def changes(rows: Iterable[Row], settled: Mapping[int, Delivery]) -> Changes:
    """What to store so that each position has its new delivery. What is delivered stays delivered."""
    rest, cuts = dict(settled), list[Cut]()
    for row in apart(rows):
        here = {at: rest.pop(at) for at in list(rest) if at in row.run}
        news = {at: new for at, new in here.items() if new != row.run.delivery}
        if news and not row.run.delivery.delivered:
            cuts.append(cut_of(row, news))
    return Changes(fold(sorted(rest.items())), cuts)


def cut_of(row: Row, news: Mapping[int, Delivery]) -> Cut:
    """The row with these positions in their new state; the cost follows those, not how long the row is."""
    old, low, high = row.run, min(news), max(news)
    within = fold((at, news.get(at, old.delivery)) for at in range(low, high + 1))
    sides = [Range(old.first, low - 1, old.delivery), Range(high + 1, old.last, old.delivery)]
    before, after = ([side] if side.first <= side.last else [] for side in sides)
    return Cut(row, joined([*before, *within, *after]))


def joined(runs: Iterable[Range]) -> list[Range]:
    """Neighbours in the same state as one."""
    found: list[Range] = []
    for run in runs:
        if found and found[-1].last + 1 == run.first and found[-1].delivery == run.delivery:
            found[-1] = replace(found[-1], last=run.last)
        else:
            found.append(run)
    return found


def apart(rows: Iterable[Row]) -> Iterator[Row]:
    """In order, without overlap: where two drains wrote at once, a position has the delivery of the lower row."""
    end = 0
    for row in rows:
        if row.run.last > end:
            yield replace(row, run=replace(row.run, first=max(row.run.first, end + 1)))
            end = row.run.last


def delivered_within(runs: Iterable[Range], after: int, through: int) -> int:
    """How many positions in (`after`, `through`] are delivered."""
    return sum(
        max(0, min(run.last, through) - max(run.first, after + 1) + 1)
        for run in runs
        if run.delivery.status in DELIVERED
    )


def after_changes(rows: Iterable[Row], made: Changes) -> list[Range]:
    """The runs as they are once the changes are stored."""
    cut = {one.old.run.last: one.runs for one in made.cuts}
    old = [run for row in apart(rows) for run in cut.get(row.run.last, [row.run])]
    return sorted([*old, *made.fresh], key=lambda run: run.first)


def is_open(delivery: Delivery) -> bool:
    return delivery.status in OPEN
