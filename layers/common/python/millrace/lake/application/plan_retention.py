"""Plan retention: which events of a ledger may go now, and who holds the others (C8, S13). Nothing is changed here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace.lake.domain.retention import WHOLE, Release
from millrace.lake.domain.retention_rules import DAY_MS, Rule, Ruling
from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.domain.names import Ledger, bucket_last, bucket_of
from millrace.ledger.domain.page import Page, contiguous
from millrace.ledger.domain.ranges import Ranges
from millrace.ledger.ports import Log, Marks

NOBODY = "watermarks"


@dataclass(frozen=True, slots=True)
class Plan:
    """`holders`: up to which position each lets events go; `release` is what they and the policies come to."""

    ledger: Ledger
    floor: int
    head: int
    release: Release
    holders: Mapping[str, int]
    goes: Ranges
    bytes: int
    kept: int
    """Retained events up to the limit that a partition still needs."""

    @property
    def held_by(self) -> str:
        """Who keeps retention from going further: the lowest holder, or the watermarks themselves."""
        name = min(self.holders, key=lambda holder: self.holders[holder], default=NOBODY)
        return name if name in self.holders and self.holders[name] < self.release.highest else NOBODY

    def as_json(self) -> dict[str, Any]:
        """For reports and manifests."""
        return {
            "ledger": self.ledger.name,
            "floor": self.floor,
            "head": self.head,
            "watermark": self.release.watermark,
            "partition_watermarks": dict(sorted(self.release.partitions.items())),
            "holders": dict(sorted(self.holders.items())),
            "held_by": self.held_by,
            "limit": self.release.limit,
            "events": self.goes.count,
            "bytes": self.bytes,
            "kept_for_a_partition": self.kept,
            "goes": [list(span) for span in self.goes],
        }


@dataclass(frozen=True, slots=True)
class PlanRetention:
    log: Log
    heads: Heads
    clock: Callable[[], int]
    most_pages: int | None = None
    """Read at a time; None: all. A plan that read no further names less than may go, never more."""
    cut: list[str] = field(default_factory=list)
    """Ledgers of which not all was read."""

    def __call__(self, ledger: Ledger, ruling: Ruling, marks: Marks, holders: Mapping[str, int]) -> Plan:
        head = newest(self.log, self.heads, ledger, marks.hint)
        limit = min([head, *holders.values()])
        release = self._release(ledger, ruling, marks.floor, head, limit)
        goes, size, kept = list[int](), 0, 0
        through = min(limit, release.highest)
        for page in self._pages(ledger, marks.floor, through):
            for event in page.events():
                if event.position > through or event.record.body is None:
                    continue
                if release.allows(event.position, event.record.partitions):
                    goes.append(event.position)
                    size += len(event.record.body)
                else:
                    kept += 1
        return Plan(ledger, marks.floor, head, release, holders, Ranges.of(goes), size, kept)

    def _release(self, ledger: Ledger, ruling: Ruling, floor: int, head: int, limit: int) -> Release:
        ages = self._aged(ledger, ruling, floor, limit)
        counted = self._counted(ledger, ruling, floor, head)

        def watermark(rule: Rule, by_count: int) -> int:
            by_age = 0 if rule.max_age_days is None else ages[rule.max_age_days]
            # Below the floor everything has gone, whoever let it go.
            return max(rule.advance_to, by_age, by_count, floor - 1)

        by_count = 0 if ruling.whole.max_events is None else max(0, head - ruling.whole.max_events)
        named = {name: watermark(rule, counted.get(name, 0)) for name, rule in ruling.partitions.items()}
        return Release(limit, watermark(ruling.whole, by_count), named)

    def _aged(self, ledger: Ledger, ruling: Ruling, floor: int, limit: int) -> dict[int, int]:
        """Days → the last position before which everything is that old. Pages come in order, times nearly so: what
        follows a younger page waits for it."""
        now = self.clock()
        before = {rule.max_age_days: now - rule.max_age_days * DAY_MS for rule in ruling.rules if rule.max_age_days}
        aged = dict.fromkeys(before, 0)
        for page in self._pages(ledger, floor, limit) if before else ():
            older = [days for days, cut in before.items() if page.time_ms < cut]
            for days in older:
                aged[days] = page.end
            before = {days: before[days] for days in older}
            if not before:
                break
        return aged

    def _counted(self, ledger: Ledger, ruling: Ruling, floor: int, head: int) -> dict[str, int]:
        """Partition → the position up to which its newest `max_events` do not reach."""
        newest_of = {
            name: deque[int](maxlen=rule.max_events + 1)
            for name, rule in ruling.partitions.items()
            if name != WHOLE and rule.max_events is not None
        }
        for page in self._pages(ledger, floor, head) if newest_of else ():
            for event in page.events():
                for name in newest_of.keys() & set(event.record.partitions):
                    newest_of[name].append(event.position)
        return {name: places[0] if len(places) == places.maxlen else 0 for name, places in newest_of.items()}

    def _pages(self, ledger: Ledger, floor: int, through: int) -> Iterator[Page]:
        """From the bucket of the floor on, without a hole."""
        at, read = bucket_last(bucket_of(floor) - 1), 0
        while at < through:
            pages = list(contiguous(self.log.read(ledger, at).pages, at))
            if not pages:
                return
            for page in pages:
                if page.first > through:
                    return
                if read == self.most_pages:
                    self.cut.append(ledger.name)
                    return
                read += 1
                yield page
            at = pages[-1].end
