"""Deliveries as an operator sees them, one per event, read from runs and from the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from millrace.delivery.adapters.dynamodb import keys
from millrace.delivery.adapters.dynamodb.ledger import DynamoDeliveryLedger
from millrace.delivery.adapters.dynamodb.runs import row_of
from millrace.delivery.application.find_event import FindEvent
from millrace.delivery.domain.rows import Row, changes
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.ports.deliveries import START, Found, Place
from millrace.delivery.ports.targets import Counted, Listed
from millrace.ledger.domain.errors import BadRequest

LAST = "~"
"""After every key: the names of ledgers begin with those of contracts."""
MOST_SORT_BYTES = 1024
ROWS_READ = 500
"""In one page: a filter that finds little must not read for ever."""


@dataclass(frozen=True, slots=True)
class DynamoDeliveries:
    ledger: DynamoDeliveryLedger
    find_event: FindEvent
    clock: Callable[[], int]

    def find(self, target_id: str, status: Status | None, after: Place = START, limit: int = 100) -> Sequence[Found]:
        found: list[Found] = []
        rows = self.rows_in(target_id, status, "")
        if status in (Status.PENDING, Status.REJECTED):
            # Their pointers are in order of time.
            rows = iter(sorted(rows, key=lambda one: (one[1], one[2].run.first)))
        for _, ledger, row in rows:
            if status in (None, row.run.delivery.status) and (ledger, row.run.last) > after and len(found) < limit:
                first = max(row.run.first, after[1] + 1) if ledger == after[0] else row.run.first
                named = islice(self.ledger.events.named(ledger, first, row.run.last), limit - len(found))
                found += [Found(target_id, ledger, at, id_, kind, row.run.delivery) for at, id_, kind in named]
        return found

    def page(self, target_id: str, status: Status | None, after: str, limit: int) -> Listed:
        begun, position = place_in(after)
        found: list[Found] = []
        last = begun
        for read, (sort, ledger, row) in enumerate(self.rows_in(target_id, status, begun)):
            first = max(row.run.first, position + 1) if sort == begun else row.run.first
            if status in (None, row.run.delivery.status):
                for at, event_id, kind in self.ledger.events.named(ledger, first, row.run.last):
                    if len(found) == limit:
                        return Listed(found, f"{sort}{keys.END}{at - 1}")
                    found.append(Found(target_id, ledger, at, event_id, kind, row.run.delivery))
            last = sort
            if read >= ROWS_READ:
                return Listed(found, f"{last}{keys.END}{row.run.last}")
        return Listed(found, None)

    def counts(self, target_id: str) -> Mapping[Status, int]:
        counts: Counter[Status] = Counter()
        for kind in (keys.TRANSIENT, keys.WAITING, keys.TERMINAL):
            for _, _, row in self._pointed(target_id, kind, ""):
                counts[row.run.delivery.status] += row.run.last - row.run.first + 1
        return counts

    def count_some(self, target_id: str, most_runs: int, status: Status | None = None) -> Counted:
        counts: Counter[Status] = Counter()
        kinds = (keys.TRANSIENT, keys.WAITING, keys.TERMINAL) if status is None else (keys.POINTER_OF[status],)
        rows = (row for kind in kinds for row in self._kind(target_id, kind))
        for row in islice(rows, most_runs):
            counts[row.run.delivery.status] += row.run.last - row.run.first + 1
        return Counted(counts, complete=next(rows, None) is None)

    def _kind(self, target_id: str, kind: str) -> Iterator[Row]:
        return (row for _, _, row in self._pointed(target_id, kind, ""))

    def at(self, target_id: str, ledger: str, position: int) -> Delivery | None:
        row = self._holding(target_id, ledger, position)
        return row.run.delivery if row else None

    def get(self, target_id: str, event_id: str) -> Found | None:
        for place in self.find_event(target_id, event_id):
            delivery = self.at(target_id, place.ledger, place.position)
            if delivery is not None:
                return Found(target_id, place.ledger, place.position, event_id, place.event_type, delivery)
        return None

    def replace(self, found: Found, delivery: Delivery) -> bool:
        """Unlike `record` this may change what is given up. The visit comes last: a drain that is under way may have
        crossed it off before the row was there."""
        runs, target_id, ledger = self.ledger.runs, found.target_id, found.ledger
        row = self._holding(target_id, ledger, found.position)
        if row is None or row.run.delivery != found.delivery:
            return False
        [cut] = changes([row], {found.position: delivery}).cuts
        now_ms = self.clock()
        runs.point(target_id, ledger, cut.runs, now_ms)
        if not runs.cut(target_id, ledger, cut, 0):
            return False
        runs.unpoint(target_id, ledger, cut)
        if delivery.next_ms is not None:
            runs.store([keys.key(keys.agenda(target_id), keys.visit(delivery.next_ms, ledger))])
        return True

    def _holding(self, target_id: str, ledger: str, position: int) -> Row | None:
        return next(iter(self.ledger.runs.overlapping(target_id, ledger, position, position)), None)

    def rows_in(self, target_id: str, status: Status | None, begun: str) -> Iterator[tuple[str, str, Row]]:
        """Runs in this status from a place on, each with its place and its ledger."""
        if status is not None and status in keys.POINTER_OF:
            return self._pointed(target_id, keys.POINTER_OF[status], begun)
        return self._all(target_id, begun)

    def _all(self, target_id: str, begun: str) -> Iterator[tuple[str, str, Row]]:
        runs = self.ledger.runs
        for item in runs.items(runs.between(keys.rows(target_id), _from(begun, " "), LAST), ROWS_READ):
            sort = item["s"]["S"]
            yield sort, sort.rpartition(keys.END)[0], row_of(item)

    def _pointed(self, target_id: str, kind: str, begun: str) -> Iterator[tuple[str, str, Row]]:
        runs, first = self.ledger.runs, kind + keys.END
        for pointers in runs.pointed(target_id, _from(begun, first), first + LAST):
            for pointer, row in runs.follow(target_id, pointers, self.clock()):
                yield pointer.sort, pointer.ledger, row


def place_in(after: str) -> tuple[str, int]:
    """Where a page ended: a run's place, and a position in it."""
    if not after:
        return "", 0
    sort, _, position = after.rpartition(keys.END)
    if not sort or len(sort.encode()) > MOST_SORT_BYTES or not (position.isascii() and position.isdigit()):
        raise _noplace_in()
    return sort, int(position[:20])


def _from(begun: str, first: str) -> str:
    """Where to go on; what is no key of this listing leads nowhere."""
    if begun and not first <= begun <= (LAST if first == " " else first + LAST):
        raise _noplace_in()
    return begun or first


def _noplace_in() -> BadRequest:
    return BadRequest("after must be the next_after of an earlier page.", field="after")
