"""Dispatch: bring to one target what is due there. It knows receivers by their contract alone (D4, D6, D7, D8)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from millrace.delivery.domain.outcomes import MISSING, Answer, Verdict
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.selection import Pick, Selection
from millrace.delivery.domain.states import Delivery, Outcome, Status, settle
from millrace.delivery.domain.targets import Blocked, Target
from millrace.delivery.ports.deliveries import DeliveryLedger, DeliveryReceiver, TargetStates


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


@dataclass(frozen=True, slots=True)
class Offered:
    """What became of a selection; events without an outcome were not attempted. `stop`: why the drain ends here."""

    outcomes: Mapping[int, Outcome]
    stop: Answer | None = None


@dataclass(frozen=True, slots=True)
class Dispatch:
    deliveries: DeliveryLedger
    states: TargetStates
    clock: Callable[[], int]
    random: Callable[[], float]
    schedule: Schedule = field(default_factory=Schedule)
    may_go_on: Callable[[], bool] = lambda: True
    progress: Callable[[int], None] = lambda _: None

    def __call__(self, target: Target, receiver: DeliveryReceiver, *, force: bool = False) -> Drained:
        """One pass: an event is attempted at most once, however long it takes. `force`: whatever the circuit says."""
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
        for ledger in self.deliveries.ledgers(target, began_ms):
            drained = self._drain(target, receiver, ledger, began_ms, counts)
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
        self, target: Target, receiver: DeliveryReceiver, ledger: str, began_ms: int, counts: Counter[Status]
    ) -> Drained | None:
        """None when the ledger has nothing more that is due; else why the whole drain ends."""
        while True:
            if not self.may_go_on():
                return Drained(target.id, counts)
            chosen = self.deliveries.select(target, ledger, began_ms, receiver.most_events, receiver.most_bytes)
            if not chosen.picks:
                self.deliveries.record(target, ledger, {}, chosen.through)
                return None
            picks = self.deliveries.begin(target, ledger, chosen.picks)
            offered = offer(receiver, picks)
            settled = self._settled(picks, offered.outcomes)
            self.deliveries.record(target, ledger, settled, _through(chosen, picks, settled))
            counts.update(delivery.status for delivery in settled.values())
            self.progress(len(settled))
            if not picks:
                continue
            if offered.stop is not None:
                return replace(self._stopped(target, offered.stop), counts=counts)
            self._answered(target)

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

    def _stopped(self, target: Target, stop: Answer) -> Drained:
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


def offer(receiver: DeliveryReceiver, picks: Sequence[Pick]) -> Offered:
    """Send a selection, in parts if the target will not have it whole; poison ends up alone."""
    outcomes: dict[int, Outcome] = {}
    batches = deque([list(picks)] if picks else [])
    while batches:
        batch = batches.popleft()
        answer = receiver.deliver(batch)
        if answer.verdict in (Verdict.RESULTS, Verdict.PARTLY):
            answered = {
                pick.position: answer.results[pick.event_id] for pick in batch if pick.event_id in answer.results
            }
            rest = [pick for pick in batch if pick.position not in answered]
            outcomes |= answered
            if answer.verdict is Verdict.PARTLY and answered and rest:
                batches.appendleft(rest)
            else:
                outcomes |= {pick.position: MISSING for pick in rest}
        elif answer.verdict is Verdict.SPLIT and len(batch) > 1:
            middle = len(batch) // 2
            batches.extendleft([batch[middle:], batch[:middle]])
        elif answer.verdict in (Verdict.SPLIT, Verdict.HELD):
            outcomes |= {pick.position: answer.outcome for pick in batch}
        if answer.verdict in (Verdict.HELD, Verdict.GONE, Verdict.UNREACHED):
            return Offered(outcomes, answer)
    return Offered(outcomes)


def _through(chosen: Selection, picks: Sequence[Pick], settled: Mapping[int, Delivery]) -> int:
    """Not past an event that was selected for the first time and not attempted after all."""
    begun = {pick.position for pick in picks}
    left = [
        pick.position
        for pick in chosen.picks
        if pick.delivery is None and pick.position in begun and pick.position not in settled
    ]
    return min(left) - 1 if left else chosen.through
