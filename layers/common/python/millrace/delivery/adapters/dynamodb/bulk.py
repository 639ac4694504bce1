"""Many deliveries tried again, run by run: a run of equal deliveries changes as one row where it is wanted as a whole.

A step may die anywhere. Pointers and visits are written before the row that they lead to, and one more visit after it,
because a drain that is under way may have crossed off the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millrace.delivery.adapters.dynamodb import keys
from millrace.delivery.adapters.dynamodb.listing import DynamoDeliveries, place_in
from millrace.delivery.domain.bulk import WantedDeliveries
from millrace.delivery.domain.ranges import Range, fold
from millrace.delivery.domain.rows import Cut, Row, joined
from millrace.delivery.domain.states import Delivery, retried
from millrace.delivery.ports.targets import RetriedSome

MOST_RUNS = 500
MOST_NAMED = 1_000
"""Events whose type is looked up in the log, in one step."""


@dataclass(frozen=True, slots=True)
class DynamoManyDeliveries:
    deliveries: DynamoDeliveries
    most_runs: int = MOST_RUNS
    most_named: int = MOST_NAMED

    def retry(self, target_id: str, wanted: WantedDeliveries, after: str, now_ms: int, *, dry_run: bool) -> RetriedSome:
        begun, position = place_in(after)
        step = _Step(self.deliveries, target_id, wanted, now_ms, self.most_named, dry_run=dry_run)
        for read, (sort, ledger, row) in enumerate(self.deliveries.rows_in(target_id, wanted.status, begun)):
            if read >= self.most_runs:
                return step.result(f"{sort}{keys.END}{step.through}")
            # What is left of a run that an earlier step has cut is filed under another place.
            first = max(row.run.first, position + 1) if _part(sort) == _part(begun) else row.run.first
            if first > row.run.last or not wanted.is_met_by(row.run.delivery, now_ms):
                continue
            if not step.take(ledger, row, first):
                return step.result(f"{sort}{keys.END}{step.through}")
        return step.result(None)


@dataclass(slots=True)
class _Step:
    deliveries: DynamoDeliveries
    target_id: str
    wanted: WantedDeliveries
    now_ms: int
    named_left: int
    dry_run: bool
    matched: int = 0
    retried: int = 0
    through: int = 0
    """Of the run that was taken last, up to where it was looked at."""

    def result(self, after: str | None) -> RetriedSome:
        return RetriedSome(self.matched, self.retried, after)

    def take(self, ledger: str, row: Row, first: int) -> bool:
        """False if there is more of this run than this step may look up."""
        old, last = row.run, row.run.last
        if self.wanted.prefixes:
            last = min(last, first + self.named_left - 1)
            self.named_left -= max(0, last - first + 1)
        self.through = max(last, first - 1)
        new = list(self._new(ledger, old, first, last))
        matched = sum(run.last - run.first + 1 for run in new if run.delivery != old.delivery)
        self.matched += matched
        if matched and not self.dry_run:
            before = [Range(old.first, first - 1, old.delivery)] if old.first < first else []
            rest = [Range(last + 1, old.last, old.delivery)] if last < old.last else []
            if self._store(ledger, Cut(row, joined([*before, *new, *rest]))):
                self.retried += matched
        return last == old.last

    def _new(self, ledger: str, old: Range, first: int, last: int) -> Iterator[Range]:
        again = retried(old.delivery, self.now_ms)
        if not self.wanted.prefixes:
            yield Range(first, last, again)
        elif first <= last:
            named = self.deliveries.ledger.events.named(ledger, first, last)
            states: dict[int, Delivery] = dict.fromkeys(range(first, last + 1), old.delivery)
            states |= {at: again for at, _, kind in named if self.wanted.names(kind)}
            yield from fold(sorted(states.items()))

    def _store(self, ledger: str, cut: Cut) -> bool:
        runs = self.deliveries.ledger.runs
        runs.point(self.target_id, ledger, cut.runs, self.now_ms)
        if not runs.cut(self.target_id, ledger, cut, 0):
            return False
        runs.unpoint(self.target_id, ledger, cut)
        runs.store([keys.key(keys.agenda(self.target_id), keys.visit(self.now_ms, ledger))])
        return True


def _part(sort: str) -> list[str]:
    """What pointers have in common that stand in order of position."""
    return sort.split(keys.END)[:-2]
