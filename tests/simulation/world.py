"""One seeded run: clients that retry, stale and cold processes, an indexer, pruners and readers, all at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from millrace.ledger.adapters.memory import MemoryDoorbell
from millrace.ledger.adapters.memory_rounds import MemoryRounds
from millrace.ledger.application import commit as commit_module
from millrace.ledger.application import heads as heads_module
from millrace.ledger.application.commit import Outcome
from millrace.ledger.application.failures import Failures
from millrace.ledger.application.heads import Heads
from millrace.ledger.application.prune import Prune
from millrace.ledger.application.sweep import Sweep, Watch
from millrace.ledger.domain import names as ledger_module
from millrace.ledger.domain.canonical import digest
from millrace.ledger.domain.consumers import FAN_OUT_CONSUMER, INDEX_CONSUMER
from millrace.ledger.domain.errors import LedgerBusy
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin
from millrace.live.application import broadcast as broadcast_module
from millrace.live.application import continue_snapshot, send_snapshot
from millrace.live.application import subscribe as subscribe_module
from millrace.streams.application import announce as announce_module
from millrace.sync.application.index_partitions import IndexPartitions
from millrace.sync.application.sync import Sync
from millrace.sync.domain.read import SyncPage
from tests.simulation.check_line import check_line
from tests.simulation.history import Answer, Cycle, Held, History, broken, check, held
from tests.simulation.line import Line, Sent
from tests.simulation.live_actors import Live
from tests.simulation.scheduler import Killed, Scheduler
from tests.simulation.tables import (
    FaultyIndex,
    FaultyLog,
    FaultyState,
    Process,
    Tables,
    Unlucky,
)

CONSUMERS = (INDEX_CONSUMER, FAN_OUT_CONSUMER)
PARTITIONS = ("a", "b", "c")
SMALL_BUCKET = 5


def shrink() -> None:
    """Make the rare common: tiny buckets, short searches, few tries: every boundary is crossed in a short run."""
    ledger_module.BUCKET = SMALL_BUCKET
    commit_module.LONG_SEARCH_PAGES = 2
    commit_module.BIG_WINNER_BYTES = 8
    heads_module.REMEMBERED = 2
    for module, limit in (
        (subscribe_module, "SENDER_MS"),
        (continue_snapshot, "SENDER_MS"),
        (send_snapshot, "HANDOVER_MS"),
    ):
        setattr(module, limit, 10**12)
    broadcast_module.SLICE_EVENTS = 2
    announce_module.TRIES = 5


@dataclass(slots=True)
class World:
    seed: int
    rng: random.Random = field(init=False)
    scheduler: Scheduler = field(init=False)
    tables: Tables = field(default_factory=Tables)
    history: History = field(default_factory=History)
    ledgers: list[Ledger] = field(init=False)
    drafts: list[Draft] = field(init=False)
    containers: list[Heads] = field(init=False)
    trouble: float = field(init=False)
    emptied: set[tuple[str, int]] = field(default_factory=set)
    live: Live = field(init=False)
    line: Line = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.scheduler = Scheduler(self.rng, stickiness=self.rng.choice((0.0, 0.5, 0.8, 0.95)))
        self.trouble = self.rng.choice((0.0, 0.02, 0.08, 0.2))
        scopes = self.rng.choice((["one"], ["one"], ["shared", "shared"], ["one", "two"]))
        self.ledgers = [Ledger(f"L{number}", scope) for number, scope in enumerate(scopes)]
        self.line = Line(self.rng, self.scheduler, self.tables)
        contents = self.rng.choice((1, 1, 2))
        self.drafts = [
            Draft(f"e{n}", digest(b"%d" % content), b'{"n":%d}' % n, self._partitions())
            for n in range(self.rng.randint(2, 20 if self.line.is_crowded else 12))
            for content in range(contents)
        ]
        self.containers = [Heads(self.scheduler.now) for _ in range(self.rng.randint(1, 3))]
        self.live = Live(self.rng, self.scheduler, self.tables, self._process, self.containers)

    def _partitions(self) -> tuple[str, ...]:
        return tuple(sorted(self.rng.sample(PARTITIONS, self.rng.randint(1, 2))))

    def run(self) -> Held:
        """Raises AssertionError when a promise is broken."""
        self._shuffle_partitions_by_id()
        self.line.begin(self.ledgers)
        if self.line.is_crowded:
            self._spawn_crowd()
        else:
            self._spawn_everybody()
        trouble = self.trouble
        self.scheduler.run()
        self._settle()
        check(self.history, self.tables, self.ledgers)
        check_line(self.line, self.history, self.tables, self.ledgers)
        self.live.check(self.history, trouble)
        return held(self.tables, self.history.answers)

    def _spawn_crowd(self) -> None:
        """Writers, who come all at once, and sometimes retention."""
        for _ in range(self.rng.randint(4, 12)):
            self.scheduler.spawn(self._client(most=3), delay=self.rng.choice((0, 0, 0, 20, 60)))
        if self.rng.random() < 0.1:
            self.scheduler.spawn(self._indexer, delay=20)
            self.scheduler.spawn(self._pruner, delay=self.rng.choice((60, 120)))

    def _spawn_everybody(self) -> None:
        for _ in range(self.rng.randint(2, 9)):
            self.scheduler.spawn(self._client(), delay=self.rng.choice((0, 0, 5, 40, 120)))
        for _ in range(self.rng.randint(1, 3)):
            self.scheduler.spawn(self._indexer, delay=self.rng.choice((3, 20, 60)))
        if self.rng.random() < 0.4:
            for _ in range(self.rng.randint(1, 2)):
                self.scheduler.spawn(self._pruner, delay=self.rng.choice((20, 60, 120)))
        for _ in range(self.rng.randint(1, 3)):
            self.scheduler.spawn(self._reader(), delay=self.rng.choice((0, 10, 50, 100)))
        self.live.spawn(self.ledgers)

    def _shuffle_partitions_by_id(self) -> None:
        """One id keeps its partitions, whatever its content: readers are checked against the log."""
        chosen: dict[str, tuple[str, ...]] = {}
        self.drafts = [Draft(d.id, d.digest, d.body, chosen.setdefault(d.id, d.partitions)) for d in self.drafts]

    def _process(self) -> Process:
        return Process(self.scheduler, self.rng, self.trouble)

    def _sync(self, process: Process, heads: Heads) -> Sync:
        return Sync(
            FaultyLog(process, self.tables.log),
            FaultyState(process, self.tables.state),
            FaultyIndex(process, self.tables.index),
            heads,
            process.together,
            direct_span=self.rng.choice((0, 0, 3, 1000)),
        )

    def _client(self, most: int = 5) -> Callable[[], None]:
        ledger = self.rng.choice(self.ledgers)
        batch = self.rng.sample(self.drafts, self.rng.randint(1, min(most, len(self.drafts))))
        tries = self.rng.randint(1, 6)
        stops = self.rng.random() < 0.3

        def client() -> None:
            for _ in range(tries):
                sent = self.scheduler.steps
                for draft in batch:
                    self.history.first_sent.setdefault((ledger.name, draft.id), sent)
                request = Sent(ledger, tuple(batch), Origin(self.rng.choice("cd"), self.live.origin()), stops)
                number = len(self.line.sent)
                try:
                    heads = self.rng.choice([*self.containers, Heads(self.scheduler.now)])
                    commit = self.line.commit(self._process(), heads, request)
                    outcomes = commit(ledger, batch, request.origin, stop_at_conflict=stops)
                except LedgerBusy:
                    broken(self.line.is_patient, "a request was refused although everybody is patient")
                    continue
                except (*Unlucky, Killed):
                    continue
                self._note_answers(request, outcomes, sent, number)
                if self.rng.random() < 0.8:
                    return

        return client

    def _note_answers(self, request: Sent, outcomes: list[Outcome], sent: int, number: int) -> None:
        stopped = False
        for draft, outcome in zip(request.batch, outcomes, strict=True):
            answer = Answer(request.ledger, draft, outcome, sent, self.scheduler.steps, number, stopped)
            self.history.answers.append(answer)
            stopped = stopped or (request.stops and outcome.conflict)

    def _indexer(self) -> None:
        for _ in range(self.rng.randint(2, 6)):
            for ledger in self.ledgers:
                process = self._process()
                with suppress(*Unlucky, Killed):
                    self._index(process, may_go_on=lambda: self.rng.random() < 0.7)(ledger)
            self.scheduler.pause()

    def _index(self, process: Process, may_go_on: Callable[[], bool]) -> IndexPartitions:
        return IndexPartitions(
            FaultyLog(process, self.tables.log),
            FaultyState(process, self.tables.state),
            FaultyIndex(process, self.tables.index),
            may_go_on,
        )

    def _pruner(self) -> None:
        for _ in range(self.rng.randint(1, 3)):
            ledger = self.rng.choice(self.ledgers)
            process = self._process()
            watermark = self.rng.randint(0, 12)
            kept = self.rng.choice((None, None, "a"))
            prune = Prune(FaultyLog(process, self.tables.log), FaultyState(process, self.tables.state), CONSUMERS)
            with suppress(*Unlucky, Killed):
                prune(ledger, watermark, lambda event, kept=kept: kept not in event.record.partitions)  # type: ignore[misc]
            cursors = self.tables.state.cursors.get(ledger.name, {})
            allowed = min([watermark, *(cursors.get(consumer, 0) for consumer in CONSUMERS)])
            self.history.prunable[ledger.name] = max(allowed, self.history.prunable.get(ledger.name, 0))
            self._note_emptied()

    def _note_emptied(self) -> None:
        """What is pruned stays pruned."""
        now = {
            (name, event.position)
            for name, pages in self.tables.log.pages.items()
            for page in pages.values()
            for event in page.events()
            if event.record.body is None
        }
        broken(self.emptied - now, "a pruned body came back:", sorted(self.emptied - now))
        self.emptied = now

    def _reader(self) -> Callable[[], None]:
        ledger = self.rng.choice(self.ledgers)
        partitions = self.rng.choice((None, frozenset("a"), frozenset("ab"), frozenset("bc")))
        limit = self.rng.choice((1, 2, 500))

        def reader() -> None:
            for _ in range(self.rng.randint(1, 3)):
                self._read_cycle(
                    ledger, partitions, self.rng.choice((0, 0, self.rng.randint(0, 8))), limit, self._process()
                )
                self.scheduler.pause()

        return reader

    def _read_cycle(
        self, ledger: Ledger, partitions: frozenset[str] | None, since: int, limit: int, process: Process
    ) -> None:
        sent, pages, cursor = self.scheduler.steps, list[SyncPage](), since
        sync_to: int | None = None
        asked = None if partitions is None else sorted(partitions)  # a set's order differs from process to process
        stalled = 0
        while stalled < 200:
            heads = self.rng.choice([*self.containers, Heads(self.scheduler.now)])
            try:
                page = self._sync(process, heads)(ledger, asked, cursor, limit, 10_000, sync_to)
            except Killed:
                break
            except Unlucky:
                stalled += 1
                continue
            stalled = stalled + 1 if page.next_since == cursor else 0
            pages.append(page)
            sync_to, cursor = page.sync_to, page.next_since
            if not page.has_more:
                self.history.cycles.append(Cycle(ledger, partitions, since, pages, sent, finished=True))
                return
        broken(stalled >= 200 and self.trouble == 0, "a sync cycle makes no progress")
        self.history.cycles.append(Cycle(ledger, partitions, since, pages, sent, finished=False))

    def _settle(self) -> None:
        """The storm is over: one sweep and one index run, then every reader must see everything."""
        self.trouble = 0
        self.scheduler.clock_ms += self.line.furthest_ahead_ms
        self.scheduler.spawn(self._final_reads)
        self.scheduler.run(limit=200_000)
        self._note_emptied()

    def _final_reads(self) -> None:
        process = self._process()
        bell, failures = MemoryDoorbell(), Failures()
        log, state = FaultyLog(process, self.tables.log), FaultyState(process, self.tables.state)
        rounds, watches = MemoryRounds(self.tables.state), [Watch(INDEX_CONSUMER, bell)]
        Sweep(log, state, rounds, watches, process.together, self.scheduler.now, lambda: True)(failures)
        failures.raise_first()
        self.live.settle(self.ledgers)
        for ledger in bell.rung:
            self._index(process, may_go_on=lambda: True)(ledger)
        for ledger in self.ledgers:
            head = max((page.end for page in self.tables.log.pages.get(ledger.name, {}).values()), default=0)
            indexed = self.tables.state.cursors.get(ledger.name, {}).get(INDEX_CONSUMER, 0)
            broken(indexed != head, "a sweep left a ledger behind:", ledger.name, indexed, head)
            for partitions in (None, *map(frozenset, PARTITIONS), frozenset(PARTITIONS)):
                self._read_cycle(ledger, partitions, 0, 500, process)
