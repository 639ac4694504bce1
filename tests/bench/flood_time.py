"""One tenant while another floods, in virtual time: the hub's own code with delays like those of AWS."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from millrace.delivery.adapters.hub_receivers import Guarded
from millrace.delivery.adapters.memory.drains import MemoryDrains, MemoryLine
from millrace.delivery.adapters.memory.targets import MemoryAgenda, MemoryDirectory
from millrace.delivery.application.deliver import Deliver
from millrace.delivery.application.expect_drain import ExpectDrain
from millrace.delivery.application.take_turns import TakeTurns
from millrace.delivery.application.wake_targets import WakeTargets
from millrace.delivery.domain.drains import Shares
from millrace.delivery.domain.events import captured
from millrace.delivery.domain.families import Family
from millrace.delivery.domain.hub_targets import check_target
from millrace.delivery.domain.outcomes import Answer
from millrace.delivery.domain.retry import Schedule
from millrace.delivery.domain.selection import Pick
from millrace.delivery.ports.targets import Wake
from millrace.delivery.receivers.registry import RECEIVERS
from millrace.ledger.adapters.memory import MemoryLog, MemoryState
from millrace.ledger.adapters.memory_rounds import MemoryRounds
from millrace.ledger.application.note_growth import NotingState
from millrace.ledger.domain.names import Ledger, bucket_end
from millrace.ledger.domain.page import Origin, Page, Record
from millrace.live.adapters.memory import MemoryConnections, MemorySubscriptions
from millrace.live.application.broadcast import Broadcast
from millrace.live.application.fan_out import FanOut
from millrace.live.ports import Subscription
from millrace_client.journal.memory.journal import MemoryJournal
from tests.bench.report import Section, Table, at_most
from tests.bench.virtual_time import VirtualTime
from tests.support.translated import of_type
from tests.support.worlds import Scripted, event
from tests.unit.delivery.test_hub_targets import OneDrain

READ_MS, POST_MS, SEND_MS = 5.0, 8.0, 8.0
"""A call of DynamoDB, a post to a connection, a message to a queue."""
RING_MS, HAND_MS, CALL_MS, START_MS = 200.0, 15.0, 8.0, 600.0
"""From a commit to the stream's reader; from a queue to its reader; a call of a function; a process that starts."""
CALL_CPU_MS, FULL_CORE_MB = 0.4, 1769
"""What a call to AWS takes of a core, and the memory with which a function has a whole one."""
THREADS = 16
ANSWER_MS, HANG_MS = 30.0, 7_500.0
"""How long a good target takes for a request, and one that hangs."""
PROBE_EVERY_MS, SETTLE_MS = 200.0, 5_000.0
PROJECTS = 200
LOUD, CALM = "a-loud", "b-calm"
HANGING = 12
PROBES = 50
RATES = (36, 150, 500)
"""The last is the most that a tenant may have."""
LIMIT = 3.0


@dataclass(frozen=True, slots=True)
class Shape:
    """What the template says of the functions in question."""

    lanes: int
    batch: int
    wake_slots: int
    wake_batch: int
    quick_slots: int
    slow_slots: int
    fan_out_mb: int
    deliver_mb: int


def of_template() -> Shape:
    mappings = of_type("AWS::Lambda::EventSourceMapping")
    fan_out, deliver = (
        of_type("AWS::Lambda::Function")[name]["Properties"] for name in ("FanOutFunction", "DeliverFunction")
    )
    log, wakes = (mappings[f"FanOutFunction{event}"]["Properties"] for event in ("Log", "Wakes"))
    quick, slow = (mappings[f"DeliverFunction{event}"]["Properties"] for event in ("Wakes", "SlowWakes"))
    return Shape(
        lanes=log.get("ParallelizationFactor", 1),
        batch=log["BatchSize"],
        wake_slots=wakes["ScalingConfig"]["MaximumConcurrency"],
        wake_batch=wakes["BatchSize"],
        quick_slots=quick["ScalingConfig"]["MaximumConcurrency"],
        slow_slots=slow["ScalingConfig"]["MaximumConcurrency"],
        fan_out_mb=fan_out["MemorySize"],
        deliver_mb=deliver["MemorySize"],
    )


@dataclass(slots=True)
class Process:
    """One function's own time: its part of a core, so many threads, and delays of what it calls."""

    time: VirtualTime
    memory_mb: int
    free_ms: float = 0.0

    def call(self, ms: float, effect: Callable[[], Any]) -> Any:
        start = max(self.time.now_ms, self.free_ms)
        self.free_ms = start + CALL_CPU_MS * max(1.0, FULL_CORE_MB / self.memory_mb)
        self.time.wait(self.free_ms - self.time.now_ms)
        return self.time.call(ms, effect)

    def together(self, calls: Sequence[Callable[[], Any]], threads: int = THREADS) -> list[Any]:
        waiting, results = deque(enumerate(calls)), dict[int, Any]()

        def thread() -> None:
            while waiting:
                number, call = waiting.popleft()
                results[number] = call()

        if calls:
            self.time.together([thread] * min(threads, len(calls)))
        return [results[number] for number in range(len(calls))]


class Slow:
    """A part in memory, which this process calls over the network."""

    def __init__(self, process: Process, part: Any, ms: float = READ_MS) -> None:
        self._process, self._part, self._ms = process, part, ms

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if not callable(found):
            return found
        return lambda *arguments, **named: self._process.call(self._ms, lambda: found(*arguments, **named))


@dataclass(slots=True)
class Queue:
    """A queue and the processes that read it, so many at once."""

    time: VirtualTime
    slots: int
    batch: int
    memory_mb: int
    work: Callable[[Process, list[Any]], None]
    waiting: deque[Any] = field(default_factory=deque)
    idle: list[Process] = field(default_factory=list)
    running: int = 0
    longest: int = 0

    def send(self, messages: Iterable[Any]) -> None:
        for message in messages:
            self.time.spawn(self.time.now_ms + HAND_MS, lambda message=message: self._arrive(message))  # type: ignore[misc]

    def _arrive(self, message: Any) -> None:
        self.waiting.append(message)
        self.longest = max(self.longest, len(self.waiting))
        if self.running < self.slots:
            self.running += 1
            self._run()
            self.running -= 1

    def _run(self) -> None:
        while self.waiting:
            taken = [self.waiting.popleft() for _ in range(min(self.batch, len(self.waiting)))]
            process = self.idle.pop() if self.idle else None
            if process is None:
                self.time.wait(START_MS)
                process = Process(self.time, self.memory_mb)
            self.time.wait(CALL_MS)
            self.work(process, taken)
            self.idle.append(process)


@dataclass(slots=True)
class Lane:
    """Of the log's stream: its records are handed over in batches, one after the other."""

    hub: Flooded
    process: Process
    waiting: deque[Ledger] = field(default_factory=deque)
    busy: bool = False

    def ring(self, ledger: Ledger) -> None:
        self.waiting.append(ledger)
        if self.busy:
            return
        self.busy = True
        while self.waiting:
            batch = [self.waiting.popleft() for _ in range(min(self.hub.shape.batch, len(self.waiting)))]
            self.hub.time.wait(CALL_MS)
            self.hub.fan_out(self.process, sorted(set(batch), key=lambda one: one.name), grown=True)
        self.busy = False


@dataclass(slots=True)
class Target(Scripted):
    hub: Any = None
    takes_ms: float = ANSWER_MS
    name: str = ""

    def deliver(self, picks: Sequence[Pick]) -> Answer:
        self.hub.time.wait(self.takes_ms * 0.5)
        for pick in picks:
            self.hub.delivered.setdefault(pick.event_id, self.hub.time.now_ms)
        self.hub.time.wait(self.takes_ms * 0.5)
        return Scripted.deliver(self, picks)


@dataclass
class Visits(OneDrain):
    """What a drain looks at: the ledgers it was woken for, and those that were noted."""

    agenda: MemoryAgenda = field(default_factory=MemoryAgenda)

    def ledgers(self, target: Any, now_ms: int) -> Iterator[str]:
        noted = self.agenda.due(target, now_ms, 1000)
        self.agenda.visits -= {(target.id, 0, ledger) for ledger in noted}
        self.left = {*self.rung, *noted}
        for ledger in sorted(self.left):
            yield ledger
            self.left.discard(ledger)


@dataclass
class Flooded:
    """A hub of two tenants; one of them may flood, and its targets hang."""

    shape: Shape = field(default_factory=of_template)
    shares: Shares = field(default_factory=Shares)
    seed: int = 7
    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)
    subscriptions: MemorySubscriptions = field(default_factory=MemorySubscriptions)
    directory: MemoryDirectory = field(default_factory=MemoryDirectory)
    drains: MemoryDrains = field(default_factory=MemoryDrains)
    standing: MemoryLine = field(default_factory=MemoryLine)
    agenda: MemoryAgenda = field(default_factory=MemoryAgenda)
    journals: dict[str, MemoryJournal] = field(default_factory=dict)
    ledgers: dict[str, Visits] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    broadcasts: dict[str, float] = field(default_factory=dict)
    delivered: dict[str, float] = field(default_factory=dict)
    committed: dict[str, float] = field(default_factory=dict)
    holders: int = 0

    def __post_init__(self) -> None:
        self.time = VirtualTime(self.seed)
        shape = self.shape
        self.lanes = [Lane(self, Process(self.time, shape.fan_out_mb)) for _ in range(shape.lanes)]
        self.wakes = Queue(self.time, shape.wake_slots, shape.wake_batch, shape.fan_out_mb, self._rest)
        self.queues = {
            slow: Queue(self.time, slots, 1, shape.deliver_mb, self._deliver)
            for slow, slots in ((False, shape.quick_slots), (True, shape.slow_slots))
        }

    def add_target(self, tenant: str, name: str, takes_ms: float) -> None:
        wanted = {"type": "stub", "sources": [{"contract": "sync", "scope": "*"}]}
        made = check_target(tenant, name, wanted, None, 5, kinds=RECEIVERS, loopback=False)
        self.directory.put(made, None)
        self.directory.states.pace(made.key, quick=True)
        self.ledgers[made.key] = Visits(self.journals, agenda=self.agenda)
        self.targets[made.key] = Target(hub=self, takes_ms=takes_ms, name=name, most_events=100)

    def listen(self, ledger: Ledger) -> None:
        connection = f"c-{ledger.name}"
        self.subscriptions.add(Subscription(connection, "sync", ledger.name, None, "snake", "p", 10**15, 0))

    def commit(self, ledger: Ledger, id_: str) -> None:
        pages = self.log.pages.get(ledger.name, {})
        position = len(pages) + 1
        page = Page(position, (Record(id_, b"d", b"{}", ("p",)),), self.time.clock(), Origin("c"), b"n")
        self.log.append(ledger, page)
        journal = self.journals.setdefault(ledger.name, MemoryJournal())
        journal.capture([(captured(event(id_)), Family.TEAMSPACE)], self.time.clock())
        self.committed[id_] = self.time.now_ms
        key = f"{ledger.name}#{(position - 1) // bucket_end(1)}"
        lane = self.lanes[crc32(key.encode()) % len(self.lanes)]
        late = RING_MS * self.time.rng.lognormvariate(0, 0.35)
        self.time.spawn(self.time.now_ms + late, lambda: lane.ring(ledger))

    def fan_out(self, process: Process, ledgers: Sequence[Ledger], *, grown: bool) -> None:
        def slow(part: Any, ms: float = READ_MS) -> Any:
            return Slow(process, part, ms)

        state = NotingState(slow(self.state), slow(MemoryRounds(self.state)), self.time.clock)
        expect = ExpectDrain(slow(self.drains), slow(self.agenda), self.time.clock)
        broadcast = Broadcast(
            log=slow(self.log),
            state=state,
            subscriptions=slow(self.subscriptions),
            connections=MemoryConnections(),
            wire=slow(_Wire(self), POST_MS),
            together=process.together,
            clock=self.time.clock,
            render=lambda _to, event: event.record.id,
            farewell=lambda _: "",
            may_go_on=lambda: True,
        )
        failures = FanOut(
            index=slow(_Nobody(), SEND_MS),
            rest=slow(_Rest(self.wakes), SEND_MS),
            later=slow(_Nobody(), SEND_MS),
            wake_targets=WakeTargets(slow(self.directory), expect, slow(self, SEND_MS), process.together),
            broadcast=broadcast,
            may_go_on=lambda: True,
            clock=self.time.clock,
            together=process.together,
        )(ledgers, grown=grown)
        failures.raise_first()

    def send(self, wakes: Sequence[Wake]) -> None:
        for wake in wakes:
            self.queues[wake.slow].send([wake])

    def _rest(self, process: Process, ledgers: list[Ledger]) -> None:
        self.fan_out(process, ledgers, grown=False)

    def _deliver(self, process: Process, wakes: list[Wake]) -> None:
        (wake,) = wakes
        key = f"{wake.tenant}#{wake.target_id}"
        ledger, began_ms = self.ledgers[key], self.time.now_ms
        unused: Any = None

        def slow(part: Any, ms: float = READ_MS) -> Any:
            return Slow(process, part, ms)

        drains, states, sending = slow(self.drains), slow(self.directory.states), slow(self, SEND_MS)

        def of_drain(rung: tuple[str, ...], _go_on: Any, _hears: Any) -> Any:
            ledger.rung = rung
            return slow(ledger)

        Deliver(
            directory=slow(self.directory),
            states=states,
            agenda=slow(self.agenda),
            lag=unused,
            drains=drains,
            turns=TakeTurns(drains, slow(self.standing), sending, self.shares, self.time.clock),
            paces=states,
            wakes=sending,
            ledger=of_drain,
            receiver=lambda _, may_send: Guarded(self.targets[key], may_send),
            beating=lambda _: nullcontext(),
            clock=self.time.clock,
            random=lambda: 0.0,
            new_id=self._new_id,
            has_time=lambda: self.time.now_ms - began_ms < 35_000,
            schedule=Schedule(),
        )(wake)

    def _new_id(self) -> str:
        self.holders += 1
        return str(self.holders)

    def probes(self, phase: str, count: int) -> dict[str, float]:
        """The p99 of broadcasts and deliveries of the tenant that does nothing else."""
        ledger = Ledger.of("sync", CALM, "demo")
        ids = [f"{phase}-{number}" for number in range(count)]
        start = self.time.now_ms
        for number, id_ in enumerate(ids):
            self.time.spawn(start + number * PROBE_EVERY_MS, lambda id_=id_: self.commit(ledger, id_))  # type: ignore[misc]
        self.time.run(start + count * PROBE_EVERY_MS + SETTLE_MS)
        return {
            "broadcast": self._p99(self.broadcasts, ids),
            "delivery": self._p99(self.delivered, ids),
        }

    def flood(self, rate: float, lasts_ms: float) -> None:
        rng, at = self.time.rng, self.time.now_ms
        number = 0
        while at < self.time.now_ms + lasts_ms:
            at += rng.expovariate(rate / 1000)
            number += 1
            ledger = Ledger.of("sync", LOUD, f"flood{rng.randrange(PROJECTS)}")
            self.time.spawn(at, lambda ledger=ledger, number=number: self.commit(ledger, f"f-{number}"))  # type: ignore[misc]

    def _p99(self, arrived: dict[str, float], ids: Sequence[str]) -> float:
        after = sorted(arrived.get(id_, math.inf) - self.committed[id_] for id_ in ids)
        return after[math.ceil(0.99 * len(after)) - 1]


@dataclass(frozen=True, slots=True)
class _Wire:
    hub: Flooded

    def post(self, _connection: str, text: str) -> bool:
        self.hub.broadcasts.setdefault(text, self.hub.time.now_ms)
        return True


@dataclass(frozen=True, slots=True)
class _Nobody:
    def ring(self, ledgers: Iterable[Ledger]) -> None:
        """The index is another function's."""


@dataclass(frozen=True, slots=True)
class _Rest:
    queue: Queue

    def ring(self, ledgers: Iterable[Ledger]) -> None:
        self.queue.send(ledgers)


@dataclass(frozen=True, slots=True)
class Measured:
    """The p99 in ms, by what was timed."""

    alone: Mapping[str, float]
    flooded: Mapping[str, float]

    def ratio(self, name: str) -> float:
        return self.flooded[name] / self.alone[name]


def measured(rate: float, shape: Shape | None = None, probes: int = PROBES, hanging: int = HANGING) -> Measured:
    """One tenant's events, alone and while another has so many requests a second and that many targets that hang."""
    hub = Flooded(shape or of_template())
    hub.add_target(CALM, "b", ANSWER_MS)
    for number in range(hanging):
        hub.add_target(LOUD, f"h{number:02}", HANG_MS)
    hub.listen(Ledger.of("sync", CALM, "demo"))
    for number in range(PROJECTS):
        hub.listen(Ledger.of("sync", LOUD, f"flood{number}"))
    hub.probes("warm", 5)
    alone = hub.probes("alone", probes)
    hub.flood(rate, SETTLE_MS + probes * PROBE_EVERY_MS)
    hub.time.run(hub.time.now_ms + SETTLE_MS / 2)
    return Measured(alone, hub.probes("flooded", probes))


def run() -> Section:
    rows, worst = [], 0.0
    for rate in RATES:
        found = measured(rate)
        for name in found.alone:
            rows.append(
                {
                    "flood, requests a second": rate,
                    "p99 of": name,
                    "alone, ms": round(found.alone[name]),
                    "flooded, ms": round(found.flooded[name]),
                    "ratio": round(found.ratio(name), 2),
                }
            )
            worst = max(worst, found.ratio(name))
    figure = at_most(
        "one tenant floods: p99 of another's broadcasts and deliveries, as a multiple of alone", LIMIT, worst
    )
    return Section([Table("floods", "One tenant while another floods, in virtual time", rows)], [figure])
