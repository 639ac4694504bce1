"""Runs of deliveries in one row: neighbours in the same state are stored once, and still answered one by one (D4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from millrace.delivery.domain.states import Delivery


@dataclass(frozen=True, slots=True)
class Range:
    """The deliveries of the positions `first`..`last` of a ledger, all alike."""

    first: int
    last: int
    delivery: Delivery

    def __contains__(self, position: object) -> bool:
        return isinstance(position, int) and self.first <= position <= self.last


def fold(deliveries: Iterable[tuple[int, Delivery]]) -> list[Range]:
    """Positions in order. Only positions that follow each other are joined: a range says nothing of a gap."""
    ranges: list[Range] = []
    for position, delivery in deliveries:
        if ranges and ranges[-1].last + 1 == position and ranges[-1].delivery == delivery:
            ranges[-1] = replace(ranges[-1], last=position)
        else:
            ranges.append(Range(position, position, delivery))
    return ranges


def unfold(ranges: Iterable[Range]) -> Iterator[tuple[int, Delivery]]:
    for one in ranges:
        for position in range(one.first, one.last + 1):
            yield position, one.delivery


def replaced(ranges: Sequence[Range], news: Sequence[tuple[int, Delivery]]) -> list[Range]:
    """The ranges with these positions in their new state; the cost follows the ranges touched."""
    new = dict(news)
    if not new:
        return list(ranges)
    low, high = min(new), max(new)
    touched = [one for one in ranges if one.last >= low - 1 and one.first <= high + 1]
    rest = [one for one in ranges if one.last < low - 1 or one.first > high + 1]
    merged = dict(unfold(touched)) | new
    return sorted([*rest, *fold(sorted(merged.items()))], key=lambda one: one.first)
