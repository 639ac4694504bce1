"""A machine that emits, polls, prunes and restarts in any order, and holds every answer against the model (T6–T10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from millrace.ledger.application.heads import Heads
from millrace.ledger.application.prune import Prune
from millrace.streams.application.emit import Emitted
from millrace.streams.application.poll import PolledBatch
from millrace.streams.domain.errors import (
    BatchTooLarge,
    Conflict,
    CursorExpired,
    EventTooLarge,
    InvalidCursor,
    SdkError,
)
from millrace.streams.domain.negotiate import StreamLimits
from tests.unit.streams.hub import RUNTIME, StreamsHub, event, told
from tests.unit.streams.model import Answer, Stream, Subscription, payload_size
from tests.unit.streams.views import Died, DyingLog, DyingState, LateLog

STREAMS = ("s", "t")
LARGE = StreamLimits(50, 4_096, 100_000, 32)
sizes = st.one_of(st.integers(0, 40), st.integers(0, 700))
emissions = st.tuples(st.sampled_from(("new", "new", "new", "again", "other")), st.integers(0, 50), sizes)
wanted = st.one_of(st.none(), st.integers(0, 8))
numbers = st.integers(0, 30)
servers = st.integers(0, 4)
late = st.one_of(st.none(), st.none(), st.integers(0, 20))
"""Which page cannot be read yet."""


class StreamsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.hub = StreamsHub()
        self.hub.agree("r2")
        self.streams = {name: Stream(name) for name in STREAMS}
        self.subscriptions: list[Subscription] = []
        self.containers = [self.hub.heads, Heads(self.hub.clock)]
        self.limits = LARGE
        self.ids = 0

    @initialize(pages=st.lists(st.integers(1, 4), max_size=6), pruned=st.integers(0, 12), most=wanted)
    def begin(self, pages: list[int], pruned: int, most: int | None) -> None:
        """A stream with a past, so that short runs tell something, too; the other is empty."""
        self._agree(LARGE)
        self.subscribe(STREAMS[0], None, None)
        for number, size in enumerate(pages):
            self.emit(STREAMS[0], [("new", 0, 10 * number)] * size, 2)
        self.poll([(0, 0, most, None, 2)])
        self.prune(STREAMS[0], pruned, None if pruned % 2 else 4)
        self.subscribe(STREAMS[0], most, None)

    @rule(name=st.sampled_from(STREAMS), batch=st.lists(emissions, min_size=1, max_size=7), server=servers)
    def emit(self, name: str, batch: list[tuple[str, int, int]], server: int) -> None:
        """T3, T10: seq_no without gaps; a duplicate keeps its own; other content, or too much, is refused."""
        self._served_by(server)
        stream, sent, expected = self.streams[name], list[Any](), list[Any]()
        for kind, number, size in batch:
            known = stream.events[number % len(stream.events)] if stream.events else None
            if kind == "new" or known is None:
                self.ids += 1
                made = event(f"e{self.ids}", payload={"pad": "x" * size})
                outcome: Any = (len(stream.events) + 1, False)
            elif kind == "again":
                made, outcome = known, (stream.events.index(known) + 1, True)
            else:
                made, outcome = {**known, "payload": {"other": True}}, Conflict
            if payload_size(made) > self.limits.max_event_bytes:
                outcome = EventTooLarge
            elif outcome == (len(stream.events) + 1, False):
                stream.events.append(made)
            sent.append(made)
            expected.append(outcome)
        results = self.hub.send(*sent, stream=name)
        got = [(r.position, r.deduped) if isinstance(r, Emitted) else type(r) for r in results]
        assert got == expected

    @rule(name=st.sampled_from(STREAMS), most=wanted, late=late)
    def subscribe(self, name: str, most: int | None, late: int | None) -> None:
        """T9: a poll without cursor opens a subscription at what is retained, and says first what is gone."""
        stream, subscription = self.streams[name], Subscription(name)
        with self._late(name, late, stream.floor - 1) as readable:
            expected = stream.first(self.limits, most, self.hub.clock(), readable)
            if self._check(stream, subscription, None, most, expected):
                self.subscriptions.append(subscription)

    @precondition(lambda self: self.subscriptions)
    @rule(polls=st.lists(st.tuples(numbers, st.integers(0, 9), wanted, late, servers), min_size=1, max_size=6))
    def poll(self, polls: list[tuple[int, int, int | None, int | None, int]]) -> None:
        """T6, T8, T9: with any cursor that was ever given, mostly a subscription's last."""
        for number, back, most, hidden, server in polls:
            self._served_by(server)
            subscription = self.subscriptions[number % len(self.subscriptions)]
            cursor, at = subscription.cursors[-1 - (back % len(subscription.cursors) if back > 4 else 0)]
            stream = self.streams[subscription.stream]
            with self._late(stream.name, hidden, at) as readable:
                expected = stream.next(subscription, at, self.limits, most, readable)
                self._check(stream, subscription, cursor, most, expected)
            subscription.degraded = subscription.degraded or expected is CursorExpired

    @contextmanager
    def _late(self, name: str, number: int | None, at: int) -> Iterator[int]:
        """While one page cannot be read yet: how far a reader that stands at a position can read."""
        pages = self.hub.log.pages.get(self.hub.ledger(name).name, {})
        head = len(self.streams[name].events)
        if number is None or not pages:
            yield head
            return
        page = pages[sorted(pages)[number % len(pages)]]
        log, self.hub.log = self.hub.log, LateLog(self.hub.log.pages, hidden=page.first)
        try:
            yield head if at >= page.end else max(at, page.first - 1)
        finally:
            self.hub.log = log

    @precondition(lambda self: self.subscriptions)
    @rule(number=numbers, how=st.sampled_from(("stream", "runtime", "altered", "cut", "empty")))
    def send_a_cursor_that_is_not_one(self, number: int, how: str) -> None:
        """T6: foreign, broken or empty; nobody's subscription suffers from it."""
        subscription = self.subscriptions[number % len(self.subscriptions)]
        cursor, name, runtime = subscription.cursors[-1][0], subscription.stream, RUNTIME
        if how == "stream":
            name = next(other for other in STREAMS if other != name)
        elif how == "runtime":
            runtime = "r2"
        elif how == "altered":
            at = number % len(cursor)
            cursor = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        else:
            cursor = cursor[: number % len(cursor)] if how == "cut" else ""
        assert isinstance(self._poll(name, cursor, runtime=runtime), InvalidCursor)

    @rule(name=st.sampled_from(STREAMS), through=st.integers(0, 40), lives=st.one_of(st.none(), st.integers(0, 4)))
    def prune(self, name: str, through: int, lives: int | None) -> None:
        """With `lives` the pruner dies after so many pages, or before it raises the floor."""
        stream, log, state = self.streams[name], self.hub.log, self.hub.state
        if lives is None:
            self.hub.prune(name, through)
        else:
            dying = DyingState(state.registry, state.cursors, state.floors)
            with suppress(Died):
                Prune(DyingLog(log.pages, lives=lives), dying, ())(self.hub.ledger(name), through)
        pages = log.pages.get(self.hub.ledger(name).name, {})
        gone = [e.position for page in pages.values() for e in page.events() if e.record.body is None]
        emptied, floor = len(gone), state.marks(self.hub.ledger(name)).floor
        assert sorted(gone) == list(range(1, emptied + 1))
        assert stream.emptied <= emptied <= max(stream.emptied, min(through, len(stream.events)))
        assert stream.floor <= floor <= emptied + 1
        assert floor == emptied + 1 or lives is not None or through < stream.emptied
        stream.emptied, stream.floor = emptied, floor

    @rule(poll=st.integers(1, 6), of_event=st.integers(256, 700), of_batch=st.integers(256, 3_000), large=st.booleans())
    def negotiate(self, poll: int, of_event: int, of_batch: int, large: bool) -> None:
        self._agree(LARGE if large else StreamLimits(poll, of_event, max(of_event, of_batch), 32))

    @precondition(lambda self: self._behind())
    @rule(number=numbers, events=st.integers(1, 5), slack=st.integers(-1, 0))
    def poll_for_as_many_bytes_as_there_are(self, number: int, events: int, slack: int) -> None:
        """T10: with a limit of exactly what the next events take, or one byte less."""
        behind = self._behind()
        subscription, cursor, at = behind[number % len(behind)]
        stream = self.streams[subscription.stream]
        following = range(at + 1, min(at + events, len(stream.events)) + 1)
        exact = 1 + sum(stream.size(position) + 1 for position in following)
        self._agree(StreamLimits(LARGE.max_poll_events, 256, max(256, exact + slack), 32))
        expected = stream.next(subscription, at, self.limits, None, len(stream.events))
        self._check(stream, subscription, cursor, None, expected)

    def _behind(self) -> list[tuple[Subscription, str, int]]:
        """Cursors after which there is something to read."""
        found = []
        for subscription in self.subscriptions:
            stream = self.streams[subscription.stream]
            for cursor, at in subscription.cursors:
                if stream.emptied <= at < len(stream.events) and not subscription.degraded:
                    found.append((subscription, cursor, at))
        return found

    @rule(name=st.sampled_from(STREAMS))
    def catch_up(self, name: str) -> None:
        """T10: a consumer that follows its cursor, and negotiates more where it must, gets all that is retained."""
        stream, limits, cursor = self.streams[name], self.limits, None
        left = max(stream.floor, stream.emptied + 1)
        seen: list[int] = []
        for _ in range(3 * len(stream.events) + 3):
            answer = self._poll(name, cursor)
            if isinstance(answer, SdkError):
                assert isinstance(answer, BatchTooLarge), answer.details
                enough = max(answer.details["event_bytes"], self.limits.max_event_bytes)
                assert self.limits.max_batch_bytes < enough
                self._agree(StreamLimits(self.limits.max_poll_events, self.limits.max_event_bytes, enough, 32))
                continue
            if cursor is not None and not answer.events:
                break
            seen += [one["seq_no"] for one in told(answer)]
            cursor = answer.next_cursor
        assert seen == [*([left - 1] if left > 1 else []), *range(left, len(stream.events) + 1)]
        self._agree(limits)

    def _served_by(self, server: int) -> None:
        """The same process as before, an older one that remembers an older head, or one that remembers nothing."""
        if server == 0:
            self.hub.restart()
            self.containers[0] = self.hub.heads
        elif server == 1:
            self.containers.reverse()
            self.hub.heads = self.containers[0]

    def _agree(self, limits: StreamLimits) -> None:
        self.limits = limits
        self.hub.agree(limits={name: getattr(limits, name) for name in StreamLimits.__slots__})

    def _check(
        self,
        stream: Stream,
        subscription: Subscription,
        cursor: str | None,
        most: int | None,
        expected: Answer | type[SdkError],
    ) -> bool:
        """Poll, and hold the answer against the expected one; False if it is an error, as expected."""
        answer = self._poll(stream.name, cursor, most)
        if isinstance(answer, SdkError):
            assert type(answer) is expected, (type(answer), answer.details, expected)
            if isinstance(answer, BatchTooLarge):
                assert set(answer.details) == {"seq_no", "event_bytes", "max_batch_bytes"}
            return False
        assert isinstance(expected, Answer), (expected, told(answer))
        self._check_batch(stream, answer, expected)
        subscription.cursors.append((answer.next_cursor, expected.to))
        return True

    def _check_batch(self, stream: Stream, batch: PolledBatch, expected: Answer) -> None:
        events: Sequence[dict[str, Any]] = [stream.seen(position) for position in expected.positions]
        if expected.dropped:
            events = [stream.gap(expected.dropped + 1, self.hub.clock()), *events]
        assert told(batch) == events
        assert batch.dropped_count == expected.dropped
        assert len(b"[" + b",".join(batch.events) + b"]") <= self.limits.max_batch_bytes

    def _poll(
        self, name: str, cursor: str | None, most: int | None = None, runtime: str = RUNTIME
    ) -> PolledBatch | SdkError:
        try:
            return self.hub.next(cursor, most, stream=name, runtime=runtime)
        except SdkError as error:
            return error
