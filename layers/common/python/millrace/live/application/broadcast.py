"""Broadcast: bring a ledger's new events to every live subscription, in order, from the fan-out's own cursor.

The order of steps makes it seamless: read the log, then the subscriptions, then post, then move the cursor. A
connection gets a contiguous prefix or is closed: after one failed post nothing more is sent to it.

A cursor says what has been sent to everyone, and that stays true. So whoever finds it out may move the cursor up, and
two who serve the same connections repeat events at worst. An audience that is too large for one function is left to a
crew, in shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from millrace.ledger.domain.consumers import FAN_OUT_CONSUMER
from millrace.ledger.domain.errors import Unavailable
from millrace.ledger.domain.names import Ledger, bucket_end
from millrace.ledger.domain.page import Event, Page, contiguous
from millrace.ledger.ports import Log, Run, State, Together
from millrace.live.application.call_crew import Audience, CallCrew
from millrace.live.application.raise_cursor import raise_cursor
from millrace.live.domain.events import SYNC, overtaken
from millrace.live.domain.shards import EVERYONE, Shard
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
    call_crew: CallCrew | None = None
    """Serves audiences that are too large for one function; None: there is no crew."""

    def __call__(self, ledger: Ledger) -> bool:
        """True when all was sent that was in the log at the beginning; False when time ran out. What is committed
        meanwhile rings for itself."""
        marks = self.state.marks(ledger)
        cursor = marks.cursors.get(FAN_OUT_CONSUMER, 0)
        if marks.shards > 1 and self.call_crew:
            self.call_crew(ledger, marks.shards, cursor)
            return True
        while True:
            run = self.log.read(ledger, cursor)
            read = list(contiguous(run.pages, cursor))
            for pages in slices(read, SLICE_EVENTS):
                events = [event for page in pages for event in page.events()]
                audience = self.find(ledger, events, most=self.call_crew.per_shard if self.call_crew else None)
                if self.call_crew and self.call_crew.takes(ledger, audience, cursor):
                    return True
                self.deliver(audience, events)
                end = pages[-1].end
                moved = self.state.move_cursor(ledger, FAN_OUT_CONSUMER, cursor, end)
                cursor = end if moved else raise_cursor(self.state, ledger, end)
                if not self.may_go_on():
                    return False
                if cursor > end:
                    break  # another fan-out went further
            else:
                if is_all(run, read):
                    return True

    def find(
        self, ledger: Ledger, events: Sequence[Event], shard: Shard = EVERYONE, most: int | None = None
    ) -> Audience:
        """Those whom one of the events may concern. Never before the events were read: else somebody who came in
        between would neither be found nor have them in its pages."""
        named = {partition for event in events for partition in event.record.partitions}
        by_connection: dict[str, list[Subscription]] = {}
        for subscription in self.subscriptions.find(ledger, named, shard, most):
            by_connection.setdefault(subscription.connection, []).append(subscription)
        return by_connection

    def deliver(self, audience: Audience, events: Sequence[Event]) -> None:
        if audience:
            self.together([partial(self._serve, of_connection, events) for of_connection in audience.values()])

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


def slices(pages: Iterable[Page], most: int) -> Iterator[list[Page]]:
    """So much at a time that posting it to many connections takes seconds; the cursor moves after each."""
    taken, events = list[Page](), 0
    for page in pages:
        if taken and events + len(page.records) > most:
            yield taken
            taken, events = [], 0
        taken.append(page)
        events += len(page.records)
    if taken:
        yield taken


def is_all(run: Run, read: Sequence[Page]) -> bool:
    """Whether these pages are all there were when they were read. Any other page is committed later than that, also one
    that is missing among them, and so rings for itself."""
    return not read or (not run.more and read[-1].end != bucket_end(read[-1].first))


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
