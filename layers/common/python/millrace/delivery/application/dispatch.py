"""Dispatch: bring to one target what is due there. It knows receivers by their contract alone (D4, D6, D7, D8)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from millrace.delivery.domain.outcomes import MISSING, Answer, Verdict
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.selection import Pick, Selection
from millrace.delivery.domain.states import Delivery, Outcome, Status, settle
from millrace.delivery.domain.targets import Blocked, Target
from millrace.delivery.ports.deliveries import DeliveryLedger, DeliveryReceiver, TargetStates
from millrace.ledger.domain.errors import UnreadableRow, unheard

STOPPING = (Verdict.HELD, Verdict.GONE, Verdict.UNREACHED, Verdict.NOT_SENT)
"""After these nothing more is sent to the target."""


@dataclass(frozen=True, slots=True)
class Drained:
    """How one drain ended. `complete`: nothing was due any more. `blocked`: why it did not begin, or stopped."""

    target_id: str
    counts: Mapping[Status, int] = field(default_factory=dict)
    complete: bool = False
    blocked: str = ""
    detail: str = ""
    open_until_ms: int = 0
    """The target is left alone until then."""
    cut: bool = False
    """It ended because its own time was over, or because others might send by now; there may be more to send."""
    most_events: int = 0
    """The batch that time ran out for, when a larger one had to be cut; whoever goes on begins with it."""


@dataclass(frozen=True, slots=True)
class Offered:
    """What one request came to; events without an outcome were not attempted. `stop`: why the drain ends here, and
    `left` how many events it would have offered next."""

    outcomes: Mapping[int, Outcome]
    stop: Answer | None = None
    left: int = 0


@dataclass(frozen=True, slots=True)
class Dispatch:
    deliveries: DeliveryLedger
    states: TargetStates
    clock: Callable[[], int]
    random: Callable[[], float]
    schedule: Schedule = field(default_factory=Schedule)
    may_go_on: Callable[[], bool] = lambda: True
    progress: Callable[[int], None] = lambda _: None
    unreadable: Callable[[UnreadableRow], None] = unheard
    """Hears of a ledger that is passed over because a row of its deliveries cannot be read."""

    def __call__(
        self, target: Target, receiver: DeliveryReceiver, *, force: bool = False, most_events: int = 0
    ) -> Drained:
        """One pass: an event is attempted at most once, however long it takes. `force`: whatever the circuit says;
        `most_events`: fewer at once than the receiver takes."""
        began_ms = self.clock()
        state = self.states.get(target.id)
        if state.paused_why:
            return Drained(target.id, blocked=Blocked.PAUSED, detail=state.paused_why)
        gate = receiver.gate()
        if gate is not None:
            return self.block(target, *gate)
        if not force and not state.circuit.allows(began_ms):
            return Drained(target.id, detail=state.blocked_detail, open_until_ms=state.circuit.open_until_ms)
        counts: Counter[Status] = Counter()
        most = min(most_events or receiver.most_events, receiver.most_events)
        for ledger in self.deliveries.ledgers(target, began_ms):
            try:
                drained = self._drain(target, receiver, ledger, began_ms, counts, most)
            except UnreadableRow as unreadable:
                self.unreadable(unreadable)  # the other ledgers of the target do not wait for this one
                continue
            if drained is not None:
                return drained
        state = self.states.get(target.id)
        if state.blocked:
            self.states.fare(target.id, state.circuit, "")
        return Drained(target.id, counts, complete=True)

    def block(self, target: Target, reason: Blocked, detail: str) -> Drained:
        """Note why nothing could be sent; the next drain that gets through takes the note away."""
        self.states.block(target.id, reason, detail, self.clock())
        return Drained(target.id, blocked=reason, detail=detail)

    def _drain(
        self, target: Target, receiver: DeliveryReceiver, ledger: str, began_ms: int, counts: Counter[Status], most: int
    ) -> Drained | None:
        """None when the ledger has nothing more that is due; else why the whole drain ends."""
        while True:
            if not self.may_go_on():
                return Drained(target.id, counts, cut=True)
            chosen = self.deliveries.select(target, ledger, began_ms, most, receiver.most_bytes)
            if not chosen.picks:
                self.deliveries.record(target, ledger, {}, chosen.through)
                return None
            picks = self.deliveries.begin(target, ledger, chosen.picks)
            if not picks:
                self.deliveries.record(target, ledger, {}, chosen.through)
                continue
            stopped = self._offer(target, receiver, ledger, replace(chosen, picks=picks), counts)
            if stopped is not None:
                return replace(stopped, counts=counts)
            self._answered(target)

    def _offer(
        self, target: Target, receiver: DeliveryReceiver, ledger: str, chosen: Selection, counts: Counter[Status]
    ) -> Drained | None:
        """Each answer is recorded before the next request goes out: whoever dies here leaves one request in doubt."""
        done: set[int] = set()
        for offered in offers(receiver, chosen.picks):
            settled = self._settled(chosen.picks, offered.outcomes)
            done |= settled.keys()
            self.deliveries.record(target, ledger, settled, _through(chosen, done))
            counts.update(delivery.status for delivery in settled.values())
            self.progress(len(settled))
            if offered.stop is not None:
                return self._stopped(target, offered.stop, offered.left)
        return None

    def _settled(self, picks: Sequence[Pick], outcomes: Mapping[int, Outcome]) -> dict[int, Delivery]:
        """One throw of the dice for all: what failed together is tried again together."""
        now_ms, jitter = self.clock(), self.random()
        return {
            pick.position: settle(pick.delivery, outcomes[pick.position], now_ms, self.schedule, jitter)
            for pick in picks
            if pick.position in outcomes
        }

    def _answered(self, target: Target) -> None:
        """The target is well; written only if it was not."""
        state = self.states.get(target.id)
        if state.blocked or state.circuit.failures:
            self.states.fare(target.id, state.circuit.answered(), "")

    def _stopped(self, target: Target, stop: Answer, left: int) -> Drained:
        if stop.verdict is Verdict.NOT_SENT:
            return Drained(target.id, cut=True, most_events=left)
        detail = stop.outcome.error
        if stop.verdict is Verdict.GONE:
            self.states.pause(target.id, detail)
            return Drained(target.id, blocked=Blocked.PAUSED, detail=detail)
        now_ms = self.clock()
        circuit = self.states.get(target.id).circuit.failed(now_ms, stop.outcome.retry_after_ms, self.random())
        self.states.fare(target.id, circuit, detail)
        drained = Drained(target.id, detail=detail, open_until_ms=circuit.open_until_ms)
        if stop.verdict is Verdict.UNREACHED:
            self.states.block(target.id, Blocked.NETWORK_UNAVAILABLE, detail, now_ms)
            return replace(drained, blocked=Blocked.NETWORK_UNAVAILABLE)
        return drained


def offers(receiver: DeliveryReceiver, picks: Sequence[Pick]) -> Iterator[Offered]:
    """Send a selection, in parts if the target will not have it whole; poison ends up alone. What each request came
    to is told before the next one is sent."""
    batches = deque([list(picks)])
    while batches:
        batch = batches.popleft()
        answer = receiver.deliver(batch)
        outcomes: dict[int, Outcome] = {}
        if answer.verdict in (Verdict.RESULTS, Verdict.PARTLY):
            outcomes = {
                pick.position: answer.results[pick.event_id] for pick in batch if pick.event_id in answer.results
            }
            rest = [pick for pick in batch if pick.position not in outcomes]
            if answer.verdict is Verdict.PARTLY and outcomes and rest:
                batches.appendleft(rest)
            else:
                outcomes |= {pick.position: MISSING for pick in rest}
        elif answer.verdict is Verdict.SPLIT and len(batch) > 1:
            middle = len(batch) // 2
            batches.extendleft([batch[middle:], batch[:middle]])
        elif answer.verdict in (Verdict.SPLIT, Verdict.HELD):
            outcomes = {pick.position: answer.outcome for pick in batch}
        if answer.verdict in STOPPING:
            yield Offered(outcomes, answer, len(batch))
            return
        if outcomes:
            yield Offered(outcomes)


def _through(chosen: Selection, done: Collection[int]) -> int:
    """Not past an event that was selected for the first time and has not been attempted yet."""
    left = [pick.position for pick in chosen.picks if pick.delivery is None and pick.position not in done]
    return min(left) - 1 if left else chosen.through
