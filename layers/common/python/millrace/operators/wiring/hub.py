"""Wiring for operators' tools and jobs, which name their tables and their bucket instead of having an environment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millrace.delivery.adapters.dynamodb.directory import DynamoDirectory
from millrace.delivery.adapters.dynamodb.positions import DynamoPositions
from millrace.delivery.adapters.dynamodb.runs import Runs
from millrace.delivery.application.held_by_targets import HeldByTargets
from millrace.lake.adapters.dynamodb.policies import DynamoPolicies
from millrace.lake.application.compacted import compacted
from millrace.lake.application.plan_retention import PlanRetention
from millrace.lake.application.retain_events import PruneRanges, RetainEvents
from millrace.lake.application.verify_archive import VerifyArchive
from millrace.lake.ports.objects import Objects
from millrace.lake.ports.retention import Holder
from millrace.ledger.adapters.dynamodb.claims import DynamoClaims
from millrace.ledger.adapters.dynamodb.log import DynamoLog
from millrace.ledger.adapters.dynamodb.projections import DynamoProjections
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import State
from millrace.operators.adapters.clients import identity_of
from millrace.operators.adapters.scans import DynamoClaimScan, DynamoLogScan
from millrace.operators.application.check_targets import CheckTargets
from millrace.operators.application.dry_run import DryClaims, DryIndex, DryRows, DryState, DryTimes
from millrace.operators.application.rebuild import Rebuild
from millrace.operators.application.rebuild_archive_cursors import RebuildArchiveCursors
from millrace.operators.application.rebuild_claims import RebuildClaims
from millrace.operators.application.rebuild_ledger import RebuildLedger
from millrace.realtime.adapters.time_index import DynamoTimes
from millrace.realtime.application.fold_transcripts import FoldTranscripts
from millrace.realtime.application.index_times import IndexTimes
from millrace.realtime.application.read_session import ReadSession
from millrace.realtime.application.rebuild_times import RebuildTimes
from millrace.streams.adapters.dynamodb.rows import DynamoRows
from millrace.streams.application.restore_rows import RestoreRows
from millrace.sync.adapters.dynamodb import DynamoIndex
from millrace.sync.application.rebuild_index import RebuildIndex

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def _no_hurry() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Hub:
    """A deployment as an operator reaches it."""

    dynamodb: DynamoDBClient
    log_table: str
    state_table: str
    delivery_table: str
    objects: Objects
    together: Threads = field(default_factory=Threads)
    claims_table: str = ""
    index_table: str = ""
    """Only a rebuild needs these two."""

    @property
    def log(self) -> DynamoLog:
        return DynamoLog(self.dynamodb, self.log_table, self.together)

    @property
    def state(self) -> DynamoState:
        return DynamoState(self.dynamodb, self.state_table)

    def verify(self, tell: Callable[[str, int], None]) -> VerifyArchive:
        return VerifyArchive(self.log, self.state, self.objects, self.together, tell)

    def prune(self, may_go_on: Callable[[], bool] = _no_hurry) -> PruneRanges:
        """What `glue_jobs/retain` is given: bodies at these positions out of this ledger's log."""
        return PruneRanges(self.log, self.state, may_go_on, self._keep)

    def retain(self, may_go_on: Callable[[], bool] = _no_hurry) -> RetainEvents:
        holders = {
            "status": self._status,
            "targets": self._needed_by_targets(),
        }
        return RetainEvents(
            DynamoPolicies(self.dynamodb, self.state_table),
            PlanRetention(self.log, Heads(now_ms), now_ms),
            self.state,
            self.prune(may_go_on),
            lambda: compacted(self.objects),
            holders,
            self.objects,
            self.together,
            now_ms,
            lambda: os.urandom(8).hex(),
            may_go_on,
        )

    def _keep(self, ledger: Ledger, through: int) -> int:
        """R8: the transcript of a session is stored before its events go, whether anybody ever asked for it or not."""
        if ledger.contract != "realtime":
            return through
        session = ReadSession(self.log, self.state, Heads(now_ms), self.together)
        return FoldTranscripts(session, self._projections("transcript")).keep(ledger, through)

    def rebuild(self, tell: Callable[[str, int], None], *, with_claims: bool = True, dry_run: bool = False) -> Rebuild:
        state, index, rows = self.state, self._index, DynamoRows(self.dynamodb, self.state_table)
        claims = self.claim_scan
        checked = RebuildClaims(self.log, DryClaims(claims) if dry_run else claims) if with_claims else None
        written: State = DryState(state) if dry_run else state
        times = DynamoTimes(self.dynamodb, self.index_table, self.together)
        return Rebuild(
            log_scan=self.log_scan,
            claims=checked,
            archive=RebuildArchiveCursors(self.log, written, self.objects, self.together),
            ledger=RebuildLedger(
                log=self.log,
                state=written,
                claims=checked,
                index=RebuildIndex(self.log, written, DryIndex(index) if dry_run else index),
                times=RebuildTimes(IndexTimes(self.log, written, DryTimes(times) if dry_run else times, _no_hurry)),
                rows=RestoreRows(DryRows(rows) if dry_run else rows, self.together, lambda: os.urandom(8).hex()),
                together=self.together,
                clock=now_ms,
            ),
            targets=CheckTargets(self._directory, self._positions, self.log),
            together=self.together,
            tell=tell,
        )

    @property
    def log_scan(self) -> DynamoLogScan:
        return DynamoLogScan(self.dynamodb, self.log_table)

    @property
    def claim_scan(self) -> DynamoClaimScan:
        return DynamoClaimScan(DynamoClaims(self.dynamodb, self.claims_table, self.together))

    @property
    def _index(self) -> DynamoIndex:
        return DynamoIndex(self.dynamodb, self.index_table, self.together)

    @property
    def identity(self) -> str:
        """Tells the tables of a rebuild from others that had the same names before."""
        return identity_of(self.dynamodb, (self.claims_table, self.log_table, self.state_table, self.index_table))

    def _status(self, ledger: Ledger) -> int | None:
        """A status that was once made must not lose what it has not folded yet; where there is none, none waits."""
        if ledger.contract != "streams":
            return None
        return self._projections("status").load(ledger).through or None

    def _projections(self, kind: str) -> DynamoProjections:
        return DynamoProjections(self.dynamodb, self.state_table, kind, lambda: os.urandom(12).hex())

    def _needed_by_targets(self) -> Holder:
        """The lowest position that any target still has to be sent, paused ones too."""
        targets = HeldByTargets(self._directory, self._positions)
        return lambda ledger: targets(ledger.name)

    @property
    def _directory(self) -> DynamoDirectory:
        return DynamoDirectory(self.dynamodb, self.delivery_table)

    @property
    def _positions(self) -> DynamoPositions:
        return DynamoPositions(Runs(self.dynamodb, self.delivery_table, self.together), self.state)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
