"""The hub's delivery ledger in DynamoDB: a cursor per target and ledger, runs of deliveries, visits that are due.

Why `record` may die at any call and be repeated: what is to be found again (pointers, visits) is written first, then
the rows, and the cursor last. Before the rows nothing has changed. With some rows and the old cursor, the next
selection passes over the events that have a row and offers the others again: a target may get an event twice, never
not at all. A row changes only if nobody else has changed it since it was read, and a delivered one never; the cursor
moves only from where it was seen, together with the count of what it passes, so nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from millrace.delivery.adapters.dynamodb import keys
from millrace.delivery.adapters.dynamodb.positions import DynamoPositions
from millrace.delivery.adapters.dynamodb.runs import Runs
from millrace.delivery.application.gather import GatherEvents, Pruned
from millrace.delivery.domain.rows import Row, after_changes, changes, delivered_within
from millrace.delivery.domain.selection import Batch, NewEvent, OpenRun, Pick, Selection, choose
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.domain.targets import Target
from millrace.ledger.domain.errors import Contention

TRIES = 5
VISITS = 1000


@dataclass(slots=True)
class DynamoDeliveryLedger:
    """For one drain. `rung`: the ledgers its wake-up named, visited after those that were due before."""

    runs: Runs
    positions: DynamoPositions
    events: GatherEvents
    clock: Callable[[], int]
    may_go_on: Callable[[], bool] = lambda: True
    rung: Sequence[str] = ()
    hears: Callable[[str], bool] = lambda _: True
    """Whether the target is still to be told of a ledger: its sources may have changed since a visit was noted."""
    unfinished: set[str] = field(init=False)
    """Of the ledgers in `rung`, those where something may be left."""

    def __post_init__(self) -> None:
        self.unfinished = set(self.rung)

    def ledgers(self, target: Target, now_ms: int) -> Iterable[str]:
        seen: set[str] = set()
        while True:
            visits = self._visits(target, now_ms)
            order = [ledger for ledger in dict.fromkeys([*visits, *self.rung]) if ledger not in seen]
            for ledger in order:
                seen.add(ledger)
                if self.hears(ledger):
                    yield ledger
                # Asked for the next one, the drain has found nothing more here, unless its time ran out.
                if self.may_go_on():
                    self.unfinished.discard(ledger)
                    self.runs.cross_off(visits.get(ledger, []))
            if not order or sum(map(len, visits.values())) < VISITS:
                return

    def _visits(self, target: Target, now_ms: int) -> dict[str, list[Any]]:
        """Some of those that are due, the oldest first."""
        asked = self.runs.between(keys.agenda(target.id), keys.moment(0), keys.moment(now_ms + 1))
        visits: dict[str, list[Any]] = {}
        for item in islice(self.runs.items(asked, VISITS), VISITS):
            visits.setdefault(item["s"]["S"].partition(keys.END)[2], []).append(item)
        return visits

    def select(self, target: Target, ledger: str, now_ms: int, events: int, size: int) -> Selection:
        cursor, transient, waiting = self._open(target, ledger, now_ms, events)
        batch, pruned = Batch(events, size), Pruned()
        chosen = choose(
            target,
            batch,
            now_ms,
            cursor,
            transient=self._runs(target, ledger, transient, pruned),
            waiting=self._runs(target, ledger, waiting, pruned),
            new=self._new(target, ledger, cursor, batch, pruned),
        )
        if pruned:
            self.record(target, ledger, self._gone(pruned), cursor)
        if any(pruned.values()):
            return self.select(target, ledger, now_ms, events, size)
        return chosen

    def begin(self, target: Target, ledger: str, picks: Sequence[Pick]) -> Sequence[Pick]:  # noqa: ARG002
        """What is committed never changes: there is nothing to freeze."""
        return picks

    def record(self, target: Target, ledger: str, settled: Mapping[int, Delivery], through: int) -> None:
        for _ in range(TRIES):
            if self._recorded(target, ledger, settled, through):
                return
        raise Contention("Somebody else keeps changing these deliveries.")

    def _recorded(self, target: Target, ledger: str, settled: Mapping[int, Delivery], through: int) -> bool:
        cursor = self.positions.stored(target, ledger)
        low = min([*settled, *([cursor + 1] if through > cursor else [])], default=0)
        high = max([*settled, through])
        rows = self.runs.overlapping(target.id, ledger, low, high) if settled or through > cursor else []
        made = changes(rows, settled)
        self.runs.point(target.id, ledger, made.runs, self.clock())
        if not self.runs.put_fresh(target.id, ledger, made.fresh):
            return False
        for cut in made.cuts:
            if not self.runs.cut(target.id, ledger, cut, cursor):
                return False
            self.runs.unpoint(target.id, ledger, cut)
        if through <= cursor:
            return True
        passed = delivered_within(after_changes(rows, made), cursor, through)
        return self.positions.move(target, ledger, cursor, through, passed)

    def _open(self, target: Target, ledger: str, now_ms: int, events: int) -> tuple[int, list[Row], list[Row]]:
        """In one round trip: where the target stands, its transient runs, and those that waited until now; of both as
        many as make up so many events."""
        transients, waits = (keys.pointers_of(kind, ledger) for kind in (keys.TRANSIENT, keys.WAITING))
        at, transient, waiting = self.runs.together(
            [
                partial(self.positions.start, target, ledger),
                partial(self._rows, target, transients, transients + "~", events),
                partial(self._rows, target, waits, waits + keys.moment(now_ms + 1), events),
            ]
        )
        return at, transient, waiting

    def _rows(self, target: Target, begin: str, end: str, events: int) -> list[Row]:
        rows: list[Row] = []
        for pointers in self.runs.pointed(target.id, begin, end):
            rows += [row for _, row in self.runs.follow(target.id, pointers, self.clock())]
            if sum(row.run.last - row.run.first + 1 for row in rows) >= events:
                break
        return rows

    def _runs(self, target: Target, ledger: str, rows: Sequence[Row], pruned: Pruned) -> Iterator[OpenRun]:
        for row in rows:
            yield OpenRun(row.run.delivery, self.events.of_run(ledger, row.run, pruned, scoped=target.scoped))

    def _new(self, target: Target, ledger: str, cursor: int, batch: Batch, pruned: Pruned) -> Iterator[NewEvent]:
        """What follows the cursor, unless an open run has to be recorded as pruned first. Leaves a mark after each
        read that brought nothing for the target."""

        def go_on(at: int) -> bool:
            if pruned or not batch.picks:
                self.record(target, ledger, self._gone(pruned), cursor if batch.picks else at)
                pruned.clear()
            return self.may_go_on()

        if not pruned:
            done = iter(self._settled_after(target, ledger, cursor))
            yield from self.events.after(ledger, cursor, done, pruned, go_on, scoped=target.scoped)

    def _settled_after(self, target: Target, ledger: str, cursor: int) -> Iterator[range]:
        """What has a delivery although the cursor is not there yet: a process died before it moved it."""
        for row in self.runs.overlapping(target.id, ledger, cursor + 1, 10**19):
            yield range(row.run.first, row.run.last + 1)

    def _gone(self, pruned: Pruned) -> dict[int, Delivery]:
        now_ms = self.clock()
        return {
            at: Delivery(
                Status.TERMINAL_FAILED,
                before.attempts if before else 0,
                before.first_ms if before else now_ms,
                now_ms,
                None,
                "pruned",
                delivered_ms=before.delivered_ms if before else None,
            )
            for at, before in pruned.items()
        }
