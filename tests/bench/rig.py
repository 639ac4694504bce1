"""The real use cases on the real adapters, against counted tables."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from local.emulator import emulator, free_port
from millrace.ledger.adapters.dynamodb.claims import DynamoClaims
from millrace.ledger.adapters.dynamodb.log import DynamoLog
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Origin, Page, Record
from millrace.ledger.ports import Together
from millrace.ledger.wiring import pause
from millrace.live.adapters.dynamodb.connections import DynamoConnections
from millrace.live.adapters.dynamodb.subscriptions import DynamoSubscriptions
from millrace.sync.adapters.dynamodb import DynamoIndex
from millrace.sync.application.index_partitions import IndexPartitions
from tests.bench.tally import CountedTogether, Tally
from tests.support.aws_tables import AwsTables, create_tables, new_client

ORIGIN = Origin("bench-client")


@dataclass(slots=True)
class Clock:
    now: int = 1_790_000_000_123

    def __call__(self) -> int:
        return self.now


@dataclass(slots=True)
class Writer:
    """A process of its own: its heads, its clock, its threads."""

    commit: Commit
    clock: Clock


@dataclass(slots=True)
class Rig:
    tables: AwsTables
    tally: Tally
    together: Together
    names: Iterator[int] = field(default_factory=itertools.count)

    @property
    def log(self) -> DynamoLog:
        return DynamoLog(self.tables.client, self.tables.log, self.together)

    @property
    def state(self) -> DynamoState:
        return DynamoState(self.tables.client, self.tables.state)

    @property
    def index(self) -> DynamoIndex:
        return DynamoIndex(self.tables.client, self.tables.index, self.together)

    @property
    def connections(self) -> DynamoConnections:
        return DynamoConnections(self.tables.client, self.tables.connections)

    @property
    def subscriptions(self) -> DynamoSubscriptions:
        return DynamoSubscriptions(self.tables.client, self.tables.connections, self.together, Clock())

    @property
    def index_partitions(self) -> IndexPartitions:
        return IndexPartitions(self.log, self.state, self.index, lambda: True)

    def ledger(self) -> Ledger:
        return Ledger.of("sync", "default", f"bench-{next(self.names):04d}")

    def writer(self) -> Writer:
        clock = Clock()
        together = CountedTogether(Threads(), self.tally.rounds)
        claims = DynamoClaims(self.tables.client, self.tables.claims, together)
        log = DynamoLog(self.tables.client, self.tables.log, together)
        return Writer(Commit(claims, log, self.state, Heads(clock), together, clock, _nonce, pause), clock)

    def fill(self, ledger: Ledger, batch: Sequence[Draft], per_page: int, after: int = 0) -> None:
        """Pages without claims, for those who only read."""
        for start in range(0, len(batch), per_page):
            self.log.append(ledger, page_of(batch[start : start + per_page], after + start + 1))


def page_of(batch: Sequence[Draft], first: int) -> Page:
    records = tuple(Record(draft.id, draft.digest, draft.body, draft.partitions) for draft in batch)
    return Page(first, records, Clock()(), ORIGIN, _nonce())


def _nonce() -> bytes:
    return os.urandom(12)


def rig_at(endpoint: str) -> Rig:
    tables = create_tables(new_client(endpoint))
    roles = {getattr(tables, role): role for role in ("claims", "log", "state", "index", "connections", "delivery")}
    tally = Tally(roles)
    tally.attach(tables.client)
    return Rig(tables, tally, CountedTogether(Threads(), tally.rounds))


@contextmanager
def own_rig() -> Iterator[Rig]:
    """On an emulator that starts and ends with the block."""
    with TemporaryDirectory() as home, emulator(Path(home), free_port()) as emulated:
        yield rig_at(emulated.endpoint_url)
