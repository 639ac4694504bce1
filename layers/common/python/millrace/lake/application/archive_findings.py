"""What the verification of the archive found, ledger by ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace.ledger.domain.ranges import Ranges


@dataclass(slots=True)
class Verified:
    """What was found. `gaps`, `repeated`, `different` and `damaged` are what is wrong."""

    ledgers: int = 0
    objects: int = 0
    events: int = 0
    repaired: int = 0
    """Objects that quarantine wrote: they say again, and otherwise, what others hold, and are not looked at."""
    waiting: int = 0
    """Committed positions above the archive's cursors."""
    pruned: int = 0
    """Positions that are in no object, and whose bodies are gone from the log."""
    gaps: dict[str, Ranges] = field(default_factory=dict)
    repeated: dict[str, Ranges] = field(default_factory=dict)
    different: dict[str, Ranges] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
    """Objects that cannot be read, or hold what no ledger has; and why."""
    refilled: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not (self.gaps or self.repeated or self.different or self.damaged)

    def as_json(self) -> dict[str, Any]:
        def spans(found: Mapping[str, Ranges]) -> dict[str, list[list[int]]]:
            return {ledger: [list(span) for span in found[ledger]] for ledger in sorted(found)}

        return {
            "sound": self.sound,
            "ledgers": self.ledgers,
            "objects": self.objects,
            "repaired": self.repaired,
            "events": self.events,
            "waiting": self.waiting,
            "pruned": self.pruned,
            "gaps": spans(self.gaps),
            "repeated": spans(self.repeated),
            "different": spans(self.different),
            "damaged": dict(sorted(self.damaged.items())),
            "refilled": self.refilled,
        }


@dataclass(slots=True)
class Held:
    """What the objects hold of one ledger, as spans that may still overlap."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    different: list[int] = field(default_factory=list)

    def add(self, position: int) -> None:
        if self.spans and self.spans[-1][1] == position - 1:
            self.spans[-1] = (self.spans[-1][0], position)
        else:
            self.spans.append((position, position))

    def repeated(self) -> Ranges:
        found, last = list[tuple[int, int]](), 0
        for first, end in sorted(self.spans):
            if first <= last:
                found.append((first, min(end, last)))
            last = max(last, end)
        return Ranges.joined(found)

    def missing(self, through: int) -> Iterator[tuple[int, int]]:
        """What is not there of 1 to `through`."""
        at = 0
        for first, last in Ranges.joined(self.spans):
            if first > at + 1 and at < through:
                yield at + 1, min(first - 1, through)
            at = max(at, last)
        if at < through:
            yield at + 1, through
