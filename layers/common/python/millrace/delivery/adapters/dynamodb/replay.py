"""A range of deliveries that a target is to get again, run by run.

A step may die anywhere. Pointers and visits are written before the rows that they lead to, and one more visit after
them, because a drain that is under way may have crossed off the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from millrace.delivery.adapters.dynamodb import keys
from millrace.delivery.adapters.dynamodb.ledger import DynamoDeliveryLedger
from millrace.delivery.domain.ranges import Range, fold
from millrace.delivery.domain.replay import WantedRange
from millrace.delivery.domain.rows import Row, cut_of
from millrace.delivery.domain.states import Delivery, replayed
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.targets import ReplayedSome

MOST_EVENTS = 1_000
"""That one step looks at: the log says of which type each is, and whether it is still there."""

News = Mapping[int, Delivery]


@dataclass(frozen=True, slots=True)
class DynamoReplays:
    ledger: DynamoDeliveryLedger
    most_events: int = MOST_EVENTS

    def replay(self, target: Target, ledger: str, wanted: WantedRange, now_ms: int, *, dry_run: bool) -> ReplayedSome:
        cursor = self.ledger.positions.stored(target, ledger)
        last = min(wanted.last, cursor)
        through = min(last, wanted.first + self.most_events - 1)
        following = through + 1 if through < last else None
        if through < wanted.first:
            return ReplayedSome(0, 0, 0, None)
        kinds = {at: kind for at, _, kind in self.ledger.events.named(ledger, wanted.first, through)}
        rows = self.ledger.runs.overlapping(target.id, ledger, wanted.first, through)
        before = {at: row.run.delivery for row in rows for at in kinds if at in row.run}
        news = {
            at: replayed(before.get(at), now_ms)
            for at, kind in kinds.items()
            if wanted.takes(target, kind, before.get(at), now_ms)
        }
        delivered_before = sum(1 for one in news.values() if one.delivered_ms is not None)
        done = 0 if dry_run else self._store(target, ledger, rows, news, cursor, now_ms)
        return ReplayedSome(len(news), done, delivered_before, following)

    def _store(self, target: Target, ledger: str, rows: Sequence[Row], news: News, cursor: int, now_ms: int) -> int:
        """How many of them were stored; a run that changed meanwhile is left alone."""
        done, rest, runs = 0, dict(news), self.ledger.runs
        for row in rows:
            here = {at: rest.pop(at) for at in list(rest) if at in row.run}
            if not here:
                continue
            cut = cut_of(row, here)
            runs.point(target.id, ledger, cut.runs, now_ms)
            if runs.cut(target.id, ledger, cut, cursor):
                runs.unpoint(target.id, ledger, cut)
                done += len(here)
        for run in fold(sorted(rest.items())):
            done += self._put(target, ledger, run, now_ms)
        if done:
            runs.store([keys.key(keys.agenda(target.id), keys.visit(now_ms, ledger))])
        return done

    def _put(self, target: Target, ledger: str, run: Range, now_ms: int) -> int:
        self.ledger.runs.point(target.id, ledger, [run], now_ms)
        stored = self.ledger.runs.put_fresh(target.id, ledger, [run])
        return run.last - run.first + 1 if stored else 0
