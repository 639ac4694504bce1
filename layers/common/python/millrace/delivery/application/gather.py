"""Gather: read events of a ledger for a target, as far as one request to it may hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from millrace.delivery.domain.families import Family
from millrace.delivery.domain.rows import Row
from millrace.delivery.domain.sources import outside
from millrace.delivery.domain.states import Delivery
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.deliveries import Pick
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event, Page
from millrace.ledger.ports import Log, Together

AT_ONCE = 1000


@dataclass(slots=True)
class Basket:
    """What is picked for one request; at least one event goes in, whatever its size."""

    target: Target
    ledger: str
    most_events: int
    most_bytes: int
    picks: list[Pick] = field(default_factory=list)
    used: int = 0
    full: bool = False

    def put(self, pick: Pick) -> bool:
        weight = len(pick.body) + 1
        if self.picks and (len(self.picks) >= self.most_events or self.used + weight > self.most_bytes):
            self.full = True
            return False
        self.picks.append(pick)
        self.used += weight
        return True


@dataclass(frozen=True, slots=True)
class Step:
    """Everything up to `through` was looked at; the bodies at `pruned` are gone."""

    through: int
    pruned: Sequence[int]


@dataclass(slots=True)
class GatherEvents:
    """Keeps the pages it read last, so that single events of a large page do not read it again and again."""

    log: Log
    together: Together
    _ledger: str = ""
    _kept: list[Page] = field(default_factory=list)

    def of_rows(self, basket: Basket, rows: Iterable[Row]) -> dict[int, Delivery | None]:
        """The events of these runs, until the basket is full. Returns those whose bodies are gone."""
        gone: dict[int, Delivery | None] = {}
        for row in rows:
            at = row.run.first - 1
            while at < row.run.last:
                events = self._events(basket.ledger, at, row.run.last)
                if not events:
                    return gone
                for event in events:
                    if event.record.body is None:
                        gone[event.position] = row.run.delivery
                    elif not basket.put(_pick(basket.ledger, event, row.run.delivery)[1]):
                        return gone
                at = events[-1].position
        return gone

    def after(self, basket: Basket, cursor: int, done: Iterator[range]) -> Iterator[Step]:
        """What follows the cursor and is wanted, until the basket is full or the head is reached, step by step.
        `done`: positions to pass over, in order."""
        at, passing = cursor, next(done, None)
        while not basket.full:
            start, gone = at, list[int]()
            for event in self._events(basket.ledger, at, at + AT_ONCE):
                while passing is not None and passing[-1] < event.position:
                    passing = next(done, None)
                if passing is None or event.position not in passing:
                    if event.record.body is None:
                        gone.append(event.position)
                    elif not self._take(basket, event):
                        break
                at = event.position
            if at == start:
                return
            yield Step(at, gone)

    def named(self, ledger: str, first: int, last: int) -> Iterator[tuple[int, str, str]]:
        """Position, id and type of the events in `first`..`last`, as a target knows them; no type if pruned."""
        at = first - 1
        while at < last:
            events = self._events(ledger, at, last)
            if not events:
                return
            for event in events:
                if event.record.body is None:
                    yield event.position, event.record.id, ""
                else:
                    kind, pick = _pick(ledger, event)
                    yield event.position, pick.event_id, kind
                at = event.position

    @staticmethod
    def _take(basket: Basket, event: Event) -> bool:
        kind, pick = _pick(basket.ledger, event)
        return not basket.target.wants(kind, Family.TEAMSPACE) or basket.put(pick)

    def _events(self, ledger: str, after: int, through: int) -> list[Event]:
        """In order, without a hole; empty at the head."""
        found = [page for page in self._pages(ledger, after, through) if page.end > after]
        return [event for page in found for event in page.events() if after < event.position <= through]

    def _pages(self, ledger: str, after: int, through: int) -> list[Page]:
        kept = self._kept
        if ledger != self._ledger or not kept or not kept[0].first <= after + 1 <= kept[-1].end:
            want = min(AT_ONCE, through - after)
            self._kept = ReadLog(self.log, self.together)(Ledger.to_read(ledger), after, after + want, want)
            self._ledger = ledger
        return self._kept


def _pick(ledger: str, event: Event, delivery: Delivery | None = None) -> tuple[str, Pick]:
    event_id, kind, body = outside(ledger, event)
    return kind, Pick(event.position, event_id, body, delivery)
