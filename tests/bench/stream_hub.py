"""The use cases of streams on counted tables: one process that emits, polls and moves markers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millrace.ledger.adapters.keyring import StagedKeys
from millrace.ledger.adapters.staged_secret import CURRENT
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.names import BUCKET, Ledger, stream_ledger
from millrace.ledger.wiring import new_id, pause
from millrace.streams.adapters.dynamodb.rows import DynamoRows
from millrace.streams.adapters.dynamodb.runtimes import DynamoRuntimes
from millrace.streams.adapters.memory import MemoryRawValues
from millrace.streams.adapters.sealing import AesSealer
from millrace.streams.application.announce import Announce
from millrace.streams.application.emit import Emit, Emitted
from millrace.streams.application.markers import ManageMarkers
from millrace.streams.application.poll import Poll, PolledBatch
from millrace.streams.domain.transition import undone
from millrace.streams.wiring import row_nonce
from tests.bench.events import IDENTITY
from tests.bench.rig import Clock, Rig
from tests.bench.stream_events import HASHED, NEGOTIATED, POLICY, stream_drafts

KEYS = StagedKeys(lambda stage: "bench" if stage == CURRENT else None, Clock())


@dataclass(frozen=True, slots=True)
class Process:
    """A function's process: it knows no head at first. Grants, of which there are none here, are kept in memory."""

    runtime: str
    emit: Emit
    poll: Poll
    markers: ManageMarkers

    def emitted(self, stream: str, events: list[dict[str, Any]]) -> list[Emitted]:
        results = self.emit(IDENTITY, self.runtime, stream, events)
        good = [result for result in results if isinstance(result, Emitted)]
        assert len(good) == len(events), results
        return good

    def polled(self, stream: str, cursor: str | None, max_events: int | None = None) -> PolledBatch:
        return self.poll(IDENTITY, self.runtime, stream, cursor, max_events)


def new_runtime(rig: Rig) -> str:
    """A runtime that has negotiated."""
    runtime = f"bench-{next(rig.names):04d}"
    _runtimes(rig).negotiate(IDENTITY.tenant, runtime, IDENTITY.client_id, NEGOTIATED)
    return runtime


def process(rig: Rig, runtime: str) -> Process:
    writer, runtimes = rig.writer(), _runtimes(rig)
    commit, together, clock = writer.commit, writer.commit.together, writer.clock
    rows = DynamoRows(rig.tables.client, rig.tables.state)
    return Process(
        runtime,
        Emit(
            commit,
            Announce(rows, commit, row_nonce, pause, undone),
            runtimes,
            MemoryRawValues(),
            AesSealer(KEYS),
            POLICY,
            lambda _: HASHED,
            together,
            clock,
        ),
        Poll(rig.log, rig.state, runtimes, runtimes, KEYS, Heads(clock), rig.together, clock, lambda: "0" * 16),
        ManageMarkers(
            Announce(rows, commit, row_nonce, pause),
            rows,
            rows,
            runtimes,
            KEYS,
            POLICY,
            lambda _: HASHED,
            clock,
            new_id,
        ),
    )


def stored(rig: Rig, runtime: str, stream: str, kind: str, events: int, per_page: int) -> Ledger:
    """A stream with so many events a page, none of them broadcast yet."""
    ledger = stream_ledger(IDENTITY.tenant, runtime, stream)
    drafts = stream_drafts(kind, events, 1, stream)
    for start in range(0, events, BUCKET):
        rig.fill(ledger, drafts[start : start + BUCKET], per_page, after=start)
    return ledger


def _runtimes(rig: Rig) -> DynamoRuntimes:
    return DynamoRuntimes(rig.tables.client, rig.tables.state, rig.together, lambda: 0)
