"""Sets of positions as sorted, closed ranges: what an archive object holds, what retention lets go."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ranges:
    """Disjoint, not even touching, in order: equal sets are equal values."""

    spans: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, positions: Iterable[int]) -> Ranges:
        return cls.joined((position, position) for position in positions)

    @classmethod
    def joined(cls, spans: Iterable[tuple[int, int]]) -> Ranges:
        merged: list[tuple[int, int]] = []
        for first, last in sorted(spans):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        return cls(tuple(merged))

    def __contains__(self, position: int) -> bool:
        at = bisect_right(self.spans, (position, float("inf"))) - 1
        return at >= 0 and position <= self.spans[at][1]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.spans)

    def __bool__(self) -> bool:
        return bool(self.spans)

    @property
    def count(self) -> int:
        return sum(last - first + 1 for first, last in self.spans)

    @property
    def last(self) -> int:
        """The greatest position, 0 of nothing."""
        return self.spans[-1][1] if self.spans else 0
