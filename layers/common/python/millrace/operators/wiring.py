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
from millrace.ledger.adapters.dynamodb.log import DynamoLog
from millrace.ledger.adapters.dynamodb.projections import DynamoProjections
from millrace.ledger.adapters.dynamodb.state import DynamoState
from millrace.ledger.adapters.threads import Threads
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.names import Ledger
from millrace.realtime.adapters.dynamodb import DynamoRealtime
from millrace.realtime.application.fold_transcripts import FoldTranscripts
from millrace.realtime.application.replay import Replay

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
        checkpoints = DynamoRealtime(self.dynamodb, self.state_table, self.together)
        replay = Replay(self.log, self.state, checkpoints, Heads(now_ms), self.together)
        return FoldTranscripts(replay, self._projections("transcript")).keep(ledger, through)

    def _status(self, ledger: Ledger) -> int | None:
        """A status that was once made must not lose what it has not folded yet; where there is none, none waits."""
        if ledger.contract != "streams":
            return None
        return self._projections("status").load(ledger).through or None

    def _projections(self, kind: str) -> DynamoProjections:
        return DynamoProjections(self.dynamodb, self.state_table, kind, lambda: os.urandom(12).hex())

    def _needed_by_targets(self) -> Holder:
        """The lowest position that any target still has to be sent, paused ones too."""
        runs = Runs(self.dynamodb, self.delivery_table, self.together)
        targets = HeldByTargets(DynamoDirectory(self.dynamodb, self.delivery_table), DynamoPositions(runs, self.state))
        return lambda ledger: targets(ledger.name)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
