"""Broadcast: bring a ledger's new events to every live subscription, in order, from the fan-out's own cursor.

The order of steps makes it seamless: read the log, then the subscriptions, then post, then move the cursor. A
connection gets a contiguous prefix or is closed: after one failed post nothing more is sent to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from millrace.ledger.domain.consumers import FAN_OUT_CONSUMER
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Event, Page, contiguous
from millrace.ledger.ports import Log, State, Together
from millrace.live.domain.events import SYNC, overtaken
from millrace.live.ports import Connections, Subscription, Subscriptions, Wire

SLICE_EVENTS = 50


@dataclass(frozen=True, slots=True)
class Broadcast:
    log: Log
    state: State
    subscriptions: Subscriptions
    connections: Connections
    wire: Wire
    together: Together
    clock: Callable[[], int]
    render: Callable[[Subscription, Event], str]
    """An event as the subscription's dialect says it."""
    farewell: Callable[[Subscription], str]
    """What an expired token is told before its connection is closed."""
    may_go_on: Callable[[], bool]
    overtaken: Callable[[Subscription, int, int, int], Sequence[str]] = overtaken
    """What a subscription is told when the events from one position up to another are gone, at a time."""

    def __call__(self, ledger: Ledger) -> bool:
        """True when the head was reached; False when time ran out or another fan-out moved the cursor first."""
        cursor = self.state.marks(ledger).cursors.get(FAN_OUT_CONSUMER, 0)
        while True:
            read = list(contiguous(self.log.read(ledger, cursor).pages, cursor))
            if not read:
                return True
            for pages in _slices(read):
                events = [event for page in pages for event in page.events()]
                self._deliver(ledger, events)
                end = pages[-1].end
                if not self.state.move_cursor(ledger, FAN_OUT_CONSUMER, cursor, end):
                    return False
                cursor = end
                if not self.may_go_on():
                    return False

    def _deliver(self, ledger: Ledger, events: Sequence[Event]) -> None:
        named = {partition for event in events for partition in event.record.partitions}
        by_connection: dict[str, list[Subscription]] = {}
        for subscription in self.subscriptions.find(ledger, named):
            by_connection.setdefault(subscription.connection, []).append(subscription)
        if by_connection:
            self.together([partial(self._serve, of_connection, events) for of_connection in by_connection.values()])

    def _serve(self, subscriptions: Sequence[Subscription], events: Sequence[Event]) -> None:
        """One connection's share. A slow or failing one delays no other: each has a thread and one failure at most."""
        for subscription in subscriptions:
            if not self._serve_one(subscription, events):
                self._drop(subscription.connection)
                return

    def _serve_one(self, subscription: Subscription, events: Sequence[Event]) -> bool:
        """False when the connection must go."""
        now = self.clock()
        if not subscription.live:
            if subscription.sender_until_ms < now:
                return False  # its snapshot will never be complete
            gone_live = self.subscriptions.note_missed(subscription, events[-1].position)
            if gone_live is None:
                return True
            subscription = gone_live
        gone = [event.position for event in events if is_lost(subscription, event)]
        wanted = [event for event in events if concerns(subscription, event) and not gone]
        if (wanted or gone) and subscription.expires_ms <= now:
            self._post(subscription, self.farewell(subscription))
            return False
        if gone:
            return self._end(subscription, gone[0], gone[-1] + 1, now)
        return all(self._post(subscription, self.render(subscription, event)) for event in wanted)

    def _end(self, subscription: Subscription, lost: int, left: int, now: int) -> bool:
        """A subscription that the floor overtook is told so and ends; its connection stays."""
        posted = all(self._post(subscription, text) for text in self.overtaken(subscription, lost, left, now))
        if posted:
            self.subscriptions.remove(subscription.connection, subscription.id)
        return posted

    def _post(self, subscription: Subscription, text: str) -> bool:
        try:
            return self.wire.post(subscription.connection, text)
        except Unavailable:
            return False

    def _drop(self, connection: str) -> None:
        """If closing fails this raises, the cursor stays, and the next run finds the connection again."""
        self.wire.close(connection)
        self.subscriptions.remove(connection)
        self.connections.remove(connection)


def _slices(pages: Iterable[Page]) -> Iterator[list[Page]]:
    """So much at a time that posting it to many connections takes seconds; the cursor moves after each."""
    taken, events = list[Page](), 0
    for page in pages:
        if taken and events + len(page.records) > SLICE_EVENTS:
            yield taken
            taken, events = [], 0
        taken.append(page)
        events += len(page.records)
    if taken:
        yield taken


def is_lost(subscription: Subscription, event: Event) -> bool:
    """Pruned before it was sent to a subscription that wants every event. A sync is told by its next page (S6)."""
    return event.record.body is None and event.position > subscription.after and subscription.id != SYNC


def concerns(subscription: Subscription, event: Event) -> bool:
    """Retained, above the live point, of its partitions, and not from this very connection."""
    if event.record.body is None or event.position <= subscription.after:
        return False
    if event.origin.connection and event.origin.connection == subscription.connection:
        return False
    return subscription.partitions is None or not set(subscription.partitions).isdisjoint(event.record.partitions)
