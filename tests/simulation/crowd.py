"""A crowd in the simulator: it comes and goes, and the workers of its shards die, come twice or not at all."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.consumers import FAN_OUT_CONSUMER
from millrace.ledger.domain.names import Ledger, bucket_end
from millrace.ledger.domain.page import Origin, Page, Record
from millrace.live.adapters.memory_shards import MemoryShards
from millrace.live.application import serve_shard, settle_shards
from millrace.live.application.call_crew import CallCrew
from millrace.live.application.serve_shard import ServeShard
from millrace.live.application.settle_shards import SettleShards
from millrace.live.domain import shards as shards_module
from millrace.live.domain.shards import Shard
from millrace.live.ports import ShardProgress, Share
from tests.simulation.history import Held, History, broken, held
from tests.simulation.live import Socket
from tests.simulation.live_actors import Live
from tests.simulation.scheduler import Killed, Scheduler
from tests.simulation.tables import FaultyLog, FaultyState, Process, Tables, Unlucky

FOREVER_MS = 10**9
SWEEPS = 40


@dataclass(slots=True)
class FaultyShards:
    process: Process
    inner: MemoryShards
    resplit: Callable[[], None]

    def split(self, ledger: Ledger, before: int, count: int) -> bool:
        if before > 1:
            self.resplit()
        return self.process.call(lambda: self.inner.split(ledger, before, count))

    def progress(self, ledger: Ledger, count: int, first: int, last: int) -> Mapping[int, ShardProgress]:
        return self.process.call(lambda: self.inner.progress(ledger, count, first, last))

    def take(self, ledger: Ledger, shard: Shard, holder: str, now_ms: int, until_ms: int) -> ShardProgress | None:
        return self.process.call(lambda: self.inner.take(ledger, shard, holder, now_ms, until_ms))

    def move(self, ledger: Ledger, shard: Shard, holder: str, progress: ShardProgress) -> bool:
        return self.process.call(lambda: self.inner.move(ledger, shard, holder, progress))


@dataclass(slots=True)
class FaultyCrew:
    """Each share brings a worker, some time later; or two, or none."""

    process: Process
    bring: Callable[[Share], None]

    def call(self, shares: Sequence[Share]) -> None:
        for share in shares:
            self.process.call(lambda share=share: self.bring(share))  # type: ignore[misc]


@dataclass(slots=True)
class CrowdWorld:
    seed: int
    rng: random.Random = field(init=False)
    scheduler: Scheduler = field(init=False)
    tables: Tables = field(default_factory=Tables)
    shards: MemoryShards = field(init=False)
    live: Live = field(init=False)
    ledgers: list[Ledger] = field(init=False)
    trouble: float = field(init=False)
    hold_ms: int = field(init=False)
    per_shard: int = field(init=False)
    rings: dict[str, int] = field(default_factory=dict)
    listening: set[str] = field(default_factory=set)
    """Ledgers whose stream is being read now: one after the other, as a shard of a stream is."""
    wakes: int = 0
    """Fan-outs beside those that the stream brings."""
    workers: int = 0
    resplit: bool = False
    left: list[Socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.scheduler = Scheduler(self.rng, stickiness=self.rng.choice((0.0, 0.5, 0.8, 0.95)))
        self.trouble = self.rng.choice((0.0, 0.0, 0.02, 0.08, 0.2))
        self.hold_ms = self.rng.choice((400, 5_000, FOREVER_MS, FOREVER_MS))
        self.per_shard = self.rng.choice((1, 1, 2, 100))
        self.shards = MemoryShards(self.tables.state)
        self.ledgers = [Ledger(f"L{number}", "one") for number in range(self.rng.choice((1, 1, 2)))]
        containers = [Heads(self.scheduler.now)]
        self.live = Live(self.rng, self.scheduler, self.tables, self._process, containers)

    def run(self) -> Held:
        """Raises AssertionError when a promise is broken."""
        serve_shard.HOLD_MS = self.hold_ms
        serve_shard.WORK_MS = self.rng.choice((0, 2_000, FOREVER_MS))
        serve_shard.SLICE_EVENTS = self.rng.choice((1, 2, 50))
        shards_module.OVERFULL = self.rng.choice((1, 1, 4))
        shards_module.FEW, shards_module.MANY = self.rng.choice(((1, 1), (1, 1), (4, 2)))
        settle_shards.NEIGHBOURS = self.rng.choice((1, 2, 16))
        self._spawn()
        self.scheduler.run(limit=200_000)  # a crowd may be split into a thousand shards
        trouble, self.trouble = self.trouble, 0.0
        if trouble == 0:
            self._check_prompt()
        self._sweep()
        self.live.fan_outs = 2 if self.resplit or self.wakes or self.hold_ms != FOREVER_MS else 1
        for socket in self.left:
            socket.complete = False  # what it has is checked, but it expects nothing more
        self.live.check(History(), trouble)
        return held(self.tables, [socket.arrived for socket in self.live.net.sockets.values()])

    def _spawn(self) -> None:
        """People come in waves and go in waves, while events are written all the time."""
        for ledger in self.ledgers:
            self.scheduler.spawn(self._writer(ledger, self.rng.randint(1, 12)), delay=self.rng.choice((0, 20, 60)))
            self.scheduler.spawn(self._writer(ledger, self.rng.randint(0, 6)), delay=self.rng.choice((0, 200, 500)))
        waves = self.rng.choice(((0,), (0, 150), (0, 150, 400)))
        for number in range(self.rng.randint(2, 12)):
            kind = self.rng.choice((self.live.syncer, self.live.syncer, self.live.subscriber))
            actor = kind(f"sync{number}", self.rng.choice(self.ledgers))
            self.scheduler.spawn(actor, delay=self.rng.choice(waves) + self.rng.choice((0, 0, 20, 60)))
        for wave in self.rng.choice(((), (100,), (100, 300))):
            for _ in range(self.rng.randint(1, 6)):
                self.scheduler.spawn(self._leave, delay=wave + self.rng.choice((0, 5, 20)))
        for _ in range(self.rng.choice((0, 0, 8, 20))):
            self.wakes += 1
            delay = self.rng.choice((10, 30, 60, 90, 120, 200))
            self.scheduler.spawn(lambda: self._fan_out(self.rng.choice(self.ledgers)), delay=delay)

    def _process(self) -> Process:
        return Process(self.scheduler, self.rng, self.trouble)

    def _writer(self, ledger: Ledger, pages: int) -> Callable[[], None]:
        def writer() -> None:
            for _ in range(pages):
                for _ in range(self.rng.choice((0, 1, 4, 15))):
                    self.scheduler.pause()
                self._append(ledger)
                self._ring(ledger)

        return writer

    def _append(self, ledger: Ledger) -> None:
        first = self._head(ledger) + 1
        size = min(self.rng.choice((1, 1, 2, 3)), bucket_end(first) - first + 1)
        partitions = [tuple(sorted(self.rng.sample("abc", self.rng.randint(1, 2)))) for _ in range(size)]
        records = tuple(Record(f"e{first + n}", b"d", b'{"n":1}', names) for n, names in enumerate(partitions))
        page = Page(first, records, self.scheduler.now(), Origin("c", self.live.origin()), b"n")
        assert self.tables.log.append(ledger, page) is None

    def _head(self, ledger: Ledger) -> int:
        return max((page.end for page in self.tables.log.pages.get(ledger.name, {}).values()), default=0)

    def _cursor(self, ledger: Ledger) -> int:
        return self.tables.state.marks(ledger).cursors.get(FAN_OUT_CONSUMER, 0)

    def _ring(self, ledger: Ledger) -> None:
        """The stream's record of a page: it may be lost. Records of one ledger are handled one after the other."""
        if self.rng.random() < self.trouble:
            return
        self.rings[ledger.name] = self.rings.get(ledger.name, 0) + 1
        if ledger.name not in self.listening:
            self.listening.add(ledger.name)
            self.scheduler.spawn(lambda: self._stream(ledger), delay=self.rng.choice((0, 1, 5)))

    def _stream(self, ledger: Ledger) -> None:
        while self.rings[ledger.name]:
            self.rings[ledger.name] = 0
            self._fan_out(ledger)
        self.listening.discard(ledger.name)

    def _fan_out(self, ledger: Ledger) -> None:
        """Tried again twice, and then given up; what time ran out for is rung for."""
        for _ in range(3):
            with suppress(*Unlucky, Killed):
                process = self._process()
                if not self.live.broadcast(process, self._call_crew(process))(ledger):
                    self._ring(ledger)
                return

    def _call_crew(self, process: Process) -> CallCrew:
        return CallCrew(
            FaultyLog(process, self.tables.log),
            FaultyState(process, self.tables.state),
            self._shards(process),
            FaultyCrew(process, self._bring),
            self.scheduler.now,
            self.per_shard,
        )

    def _shards(self, process: Process) -> FaultyShards:
        def resplit() -> None:
            self.resplit = True

        return FaultyShards(process, self.shards, resplit)

    def _bring(self, share: Share) -> None:
        times = self.rng.choice((0, 1, 1, 1, 2)) if self.rng.random() < 3 * self.trouble else 1
        for _ in range(times):
            self.scheduler.spawn(lambda: self._worker(share), delay=self.rng.choice((1, 1, 5, 30)))

    def _worker(self, share: Share) -> None:
        process = self._process()
        self.workers += 1
        me = f"w{self.workers}"
        call_crew, shards = self._call_crew(process), self._shards(process)
        serve = ServeShard(
            self.live.broadcast(process),
            call_crew,
            shards,
            SettleShards(call_crew.state, shards, self.scheduler.now, self.per_shard),
            self.scheduler.now,
            lambda: me,
        )
        try:
            serve(share)
        except (*Unlucky, Killed):
            if self.rng.random() < 0.6:
                self.scheduler.spawn(lambda: self._worker(share), delay=self.rng.choice((5, 60)))

    def _leave(self) -> None:
        """A client goes. The hub forgets it, as it does for every connection that is closed."""
        sockets = [socket for socket in self.live.net.sockets.values() if socket.open]
        if sockets:
            socket = self.rng.choice(sockets)
            socket.open = False
            self.left.append(socket)
            self.live.net.subscriptions.remove(socket.id)

    def _check_prompt(self) -> None:
        """Nothing was lost, so nobody had to wait for a sweep."""
        for ledger in self.ledgers:
            head, cursor = self._head(ledger), self._cursor(ledger)
            broken(cursor != head, "nothing went wrong, yet", ledger.name, "was served up to", cursor, "of", head)

    def _sweep(self) -> None:
        """The storm is over: sweeps alone bring every shard to the end."""
        for _ in range(SWEEPS):
            late = [ledger for ledger in self.ledgers if self._cursor(ledger) < self._head(ledger)]
            if not late:
                return
            self.scheduler.clock_ms += self.hold_ms
            for ledger in late:
                self.scheduler.spawn(lambda ledger=ledger: self._fan_out(ledger))  # type: ignore[misc]
            self.scheduler.run(limit=self.scheduler.steps + 50_000)
        broken(True, "sweeps do not bring the crowd to the end")
