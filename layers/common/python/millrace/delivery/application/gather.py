"""Gather: read events of a ledger as a target gets them, no further than they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from millrace.delivery.domain.ranges import Range
from millrace.delivery.domain.selection import NewEvent, Pick
from millrace.delivery.domain.sources import outside, outside_id
from millrace.delivery.domain.states import Delivery
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.errors import UnreadableRow
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event, Page
from millrace.ledger.ports import Log, Together

AT_ONCE = 1000


Pruned = dict[int, Delivery | None]
"""Events whose bodies are gone, by position, with the delivery they have."""


@dataclass(slots=True)
class GatherEvents:
    """Keeps the pages it read last, so that single events of a large page do not read it again and again."""

    log: Log
    together: Together
    _ledger: str = ""
    _kept: list[Page] = field(default_factory=list)

    def of_run(self, ledger: str, run: Range, pruned: Pruned, *, scoped: bool = False) -> Iterator[Pick]:
        """The events of a run; those that are pruned go there instead."""
        at = run.first - 1
        while at < run.last and (events := self._events(ledger, at, run.last)):
            for event in events:
                if event.record.body is None:
                    pruned[event.position] = run.delivery
                else:
                    yield _pick(ledger, event, run.delivery, scoped=scoped)[1]
            at = events[-1].position

    def after(
        self,
        ledger: str,
        cursor: int,
        done: Iterator[range],
        pruned: Pruned,
        go_on: Callable[[int], bool],
        *,
        scoped: bool = False,
    ) -> Iterator[NewEvent]:
        """What follows the cursor, up to the head. `done`: positions that have a delivery, in order. After each read
        `go_on` is asked, with the last position it brought."""
        at, passing = cursor, next(done, None)
        while events := self._events(ledger, at, at + AT_ONCE):
            for event in events:
                while passing is not None and passing[-1] < event.position:
                    passing = next(done, None)
                if passing is not None and event.position in passing:
                    yield NewEvent(event.position)
                else:
                    yield _new(ledger, event, pruned, scoped=scoped)
            at = events[-1].position
            if not go_on(at):
                return

    def named(self, ledger: str, first: int, last: int) -> Iterator[tuple[int, str, str]]:
        """Position, id outside (not scoped) and type of the events in `first`..`last`; no type if pruned."""
        at = first - 1
        while at < last:
            events = self._events(ledger, at, last)
            if not events:
                return
            for event in events:
                if event.record.body is None:
                    yield event.position, outside_id(ledger, event.record.id), ""
                else:
                    kind, pick = _pick(ledger, event)
                    yield event.position, pick.event_id, kind
                at = event.position

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


def _pick(ledger: str, event: Event, delivery: Delivery | None = None, *, scoped: bool = False) -> tuple[str, Pick]:
    try:
        event_id, kind, body = outside(ledger, event, scoped=scoped)
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableRow("event", f"{ledger} {event.position}", type(error).__name__) from error
    return kind, Pick(event.position, event_id, body, delivery, event.origin.trace)


def _new(ledger: str, event: Event, pruned: Pruned, *, scoped: bool) -> NewEvent:
    if event.record.body is None:
        pruned[event.position] = None
        return NewEvent(event.position)
    kind, pick = _pick(ledger, event, scoped=scoped)
    return NewEvent(event.position, kind, pick=pick)
