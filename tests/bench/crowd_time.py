"""One event to a large audience, in virtual time: the hub's own code with delays like those of AWS."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millrace.ledger.adapters.memory import MemoryLog, MemoryState
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Origin, Page, Record
from millrace.ledger.ports import Marks, Run
from millrace.live.adapters.memory import MemoryConnections, MemorySubscriptions
from millrace.live.adapters.memory_shards import MemoryShards
from millrace.live.application.broadcast import Broadcast
from millrace.live.application.call_crew import CallCrew
from millrace.live.application.serve_shard import ServeShard
from millrace.live.application.settle_shards import SettleShards
from millrace.live.domain.shards import EVERYONE, Shard, key_of
from millrace.live.ports import ShardProgress, Share, Subscription
from tests.bench.report import Section, Table, at_most
from tests.bench.virtual_time import VirtualTime

AUDIENCES = (1_000, 10_000, 100_000)
POST_MS, POST_CPU_MS = 8.0, 1.0
"""So that a worker posts a thousand times a second at most, however many threads it has."""
READ_MS, WRITE_MS = 5.0, 6.0
ROWS_A_PAGE, PAGE_MS, ROW_CPU_MS = 2_500, 15.0, 0.05
"""Of a query: a megabyte of subscriptions a page, and the time to read each of them."""
RING_MS, CALL_MS, START_MS = 200.0, 15.0, 600.0
"""From a commit to the stream's reader; a call of a worker; and a worker that has to be started first."""
THREADS, BUNDLE = 16, 16
LEDGER = Ledger.of("sync", "default", "crowd")
GOAL_S = 5.0


@dataclass(slots=True)
class Sorted(MemorySubscriptions):
    """Finds a shard without looking at all the others."""

    keys: list[str] = field(default_factory=list)
    in_order: list[Subscription] = field(default_factory=list)

    def fill(self, connections: int) -> None:
        made = [Subscription(f"c{n}", "sync", LEDGER.name, None, "snake", "p", 10**15, 0) for n in range(connections)]
        self.in_order = sorted(made, key=lambda one: key_of(one.connection, one.id))
        self.keys = [key_of(one.connection, one.id) for one in self.in_order]

    def find(
        self,
        ledger: Ledger,
        partitions: Collection[str],
        shard: Shard = EVERYONE,
        most: int | None = None,
    ) -> Sequence[Subscription]:
        end = bisect_left(self.keys, shard.end) if shard.end else len(self.keys)
        found = self.in_order[bisect_left(self.keys, shard.first) : end]
        return found if most is None else found[: most + 1]


@dataclass(slots=True)
class Process:
    """One function's own time: a core, so many threads, and delays of what it calls."""

    hub: Crowded
    core_free_ms: float = 0.0

    def call(self, ms: float, effect: Callable[[], Any]) -> Any:
        return self.hub.time.call(ms, effect)

    def compute(self, ms: float) -> None:
        start = max(self.hub.time.now_ms, self.core_free_ms)
        self.core_free_ms = start + ms
        self.hub.time.wait(self.core_free_ms - self.hub.time.now_ms)

    def together(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        waiting, results = deque(enumerate(calls)), dict[int, Any]()

        def thread() -> None:
            while waiting:
                number, call = waiting.popleft()
                results[number] = call()

        self.hub.time.together([thread] * min(THREADS, len(calls)))
        return [results[number] for number in range(len(calls))]

    def read(self, ledger: Ledger, after: int, limit: int | None = None, through: int | None = None) -> Run:
        found: Run = self.call(READ_MS, lambda: self.hub.log.read(ledger, after, limit, through))
        return found

    def marks(self, ledger: Ledger) -> Marks:
        found: Marks = self.call(READ_MS, lambda: self.hub.state.marks(ledger))
        return found

    def move_cursor(self, ledger: Ledger, consumer: str, expected: int, to: int) -> bool:
        return bool(self.call(WRITE_MS, lambda: self.hub.state.move_cursor(ledger, consumer, expected, to)))

    def find(
        self, ledger: Ledger, partitions: Collection[str], shard: Shard = EVERYONE, most: int | None = None
    ) -> Sequence[Subscription]:
        found = self.hub.subscriptions.find(ledger, partitions, shard, most)
        for start in range(0, max(1, len(found)), ROWS_A_PAGE):
            self.call(READ_MS if len(found) < ROWS_A_PAGE else PAGE_MS, lambda: None)
            self.compute(ROW_CPU_MS * len(found[start : start + ROWS_A_PAGE]))
        return found

    def post(self, connection: str, _text: str) -> bool:
        self.compute(POST_CPU_MS)
        self.call(POST_MS, lambda: self.hub.arrived.append((self.hub.time.now_ms, connection)))
        return True

    def split(self, ledger: Ledger, before: int, count: int) -> bool:
        return bool(self.call(WRITE_MS, lambda: self.hub.shards.split(ledger, before, count)))

    def progress(self, ledger: Ledger, count: int, first: int, last: int) -> Mapping[int, ShardProgress]:
        found: Mapping[int, ShardProgress] = self.call(
            READ_MS, lambda: self.hub.shards.progress(ledger, count, first, last)
        )
        self.hub.rows_read += len(found)
        return found

    def take(self, ledger: Ledger, shard: Shard, holder: str, now_ms: int, until_ms: int) -> ShardProgress | None:
        taken: ShardProgress | None = self.call(
            WRITE_MS, lambda: self.hub.shards.take(ledger, shard, holder, now_ms, until_ms)
        )
        return taken

    def move(self, ledger: Ledger, shard: Shard, holder: str, progress: ShardProgress) -> bool:
        return bool(self.call(WRITE_MS, lambda: self.hub.shards.move(ledger, shard, holder, progress)))

    def call_crew(self, shares: Sequence[Share]) -> None:
        size = BUNDLE if len(shares) > BUNDLE else 1
        bundles = [shares[start : start + size] for start in range(0, len(shares), size)]
        self.together([lambda bundle=bundle: self._invoke(bundle) for bundle in bundles])  # type: ignore[misc]

    def _invoke(self, bundle: Sequence[Share]) -> None:
        self.compute(POST_CPU_MS)
        self.call(CALL_MS, lambda: None)
        self.hub.time.spawn(self.hub.time.now_ms + START_MS, lambda: self.hub.worker(bundle))


@dataclass(slots=True)
class Crowded:
    connections: int
    time: VirtualTime = field(default_factory=lambda: VirtualTime(7))
    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)
    subscriptions: Sorted = field(default_factory=Sorted)
    shards: MemoryShards = field(init=False)
    arrived: list[tuple[float, str]] = field(default_factory=list)
    workers: int = 0
    rows_read: int = 0

    def __post_init__(self) -> None:
        self.shards = MemoryShards(self.state)
        self.subscriptions.fill(self.connections)

    def send(self) -> dict[str, Any]:
        """One event: how long after its commit the last connection has it."""
        self.arrived, self.workers, self.rows_read = [], 0, 0
        position = len(self.log.pages.get(LEDGER.name, {})) + 1
        committed_ms = self.time.now_ms
        page = Page(position, (Record(f"e{position}", b"d", b"{}", ("p",)),), 0, Origin("c"), b"n")
        self.log.append(LEDGER, page)
        self.time.spawn(committed_ms + RING_MS, lambda: self._broadcast(Process(self), own=True)(LEDGER))
        self.time.run(committed_ms + 10**6)
        served = [connection for _, connection in self.arrived]
        assert len(served) == len(set(served)) == self.connections, "each has it once"
        assert self.state.marks(LEDGER).cursors == {"fan_out": position}, "the last worker moves the cursor"
        after = sorted(at - committed_ms for at, _ in self.arrived)
        return {
            "connections": self.connections,
            "workers": self.workers,
            "first has it, s": round(after[0] / 1000, 2),
            "half have it, s": round(after[len(after) // 2] / 1000, 2),
            "last has it, s": round(after[-1] / 1000, 2),
            "rows of shards read": self.rows_read,
        }

    def worker(self, bundle: Sequence[Share]) -> None:
        process = Process(self)
        self.workers += 1
        name = f"w{self.workers}-{self.time.now_ms}"
        process.together([lambda share=share: process._invoke([share]) for share in bundle[1:]] or [lambda: None])  # type: ignore[misc]
        broadcast, crew = self._broadcast(process, own=False), self._crew(process)
        settle = SettleShards(crew.state, crew.shards, self.time.clock)
        ServeShard(broadcast, crew, crew.shards, settle, self.time.clock, lambda: name)(bundle[0])

    def _crew(self, process: Process) -> CallCrew:
        parts: Any = process
        return CallCrew(parts, parts, parts, _Calling(process), self.time.clock)

    def _broadcast(self, process: Process, *, own: bool) -> Broadcast:
        parts: Any = process
        return Broadcast(
            log=parts,
            state=parts,
            subscriptions=parts,
            connections=MemoryConnections(),
            wire=parts,
            together=process.together,
            clock=self.time.clock,
            render=lambda _to, event: str(event.position),
            farewell=lambda _: "",
            may_go_on=lambda: True,
            call_crew=self._crew(process) if own else None,
        )


@dataclass(frozen=True, slots=True)
class _Calling:
    process: Process

    def call(self, shares: Sequence[Share]) -> None:
        self.process.call_crew(shares)


def run() -> Section:
    rows = []
    for connections in AUDIENCES:
        hub = Crowded(connections)
        rows += [{"event": what, **hub.send()} for what in ("the first, which splits the crowd", "the next")]
    slowest = max(row["last has it, s"] for row in rows)
    figure = at_most("100,000 connections: seconds from a commit until the last has the event", GOAL_S, slowest, " s")
    return Section([Table("audiences", "One event to a large audience, in virtual time", rows)], [figure])
