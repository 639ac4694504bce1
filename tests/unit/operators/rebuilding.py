"""A hub in memory that loses State and its index, and a rebuild of it that can die at any call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from millrace.delivery.adapters.memory.targets import MemoryDirectory, MemoryPositions
from millrace.ledger.adapters.memory import MemoryState, in_turn
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.names import Ledger, ledger_named
from millrace.ledger.domain.page import Draft, Origin
from millrace.operators.adapters.memory import MemoryClaimScan, MemoryLogScan, MemoryPlace
from millrace.operators.application.bookmark import Bookmark
from millrace.operators.application.check_targets import CheckTargets
from millrace.operators.application.dry_run import DryClaims, DryIndex, DryPlace, DryRows, DryState, DryTimes
from millrace.operators.application.rebuild import Rebuild
from millrace.operators.application.rebuild_archive_cursors import RebuildArchiveCursors
from millrace.operators.application.rebuild_claims import RebuildClaims
from millrace.operators.application.rebuild_ledger import RebuildLedger
from millrace.operators.domain.rebuilt import Rebuilt
from millrace.realtime.adapters.memory import MemoryTimes
from millrace.realtime.application.index_times import IndexTimes
from millrace.realtime.application.rebuild_times import RebuildTimes
from millrace.streams.adapters.memory import MemoryRows
from millrace.streams.application.restore_rows import RestoreRows
from millrace.sync.adapters.memory import MemoryIndex
from millrace.sync.application.index_partitions import IndexPartitions
from millrace.sync.application.rebuild_index import RebuildIndex
from millrace.sync.application.sync import Sync
from tests.unit.lake.archiving import Fate, Hub, Mortal
from tests.unit.streams.hub import event


def event_of(contract: str, id_: str) -> dict[str, Any]:
    """An event as the contract stores it."""
    if contract == "sync":
        return {"event": {"type": "t", "payload": {"in": id_}}}
    if contract == "realtime":
        return {"eventId": id_, "type": "call.connecting", "ts": "2026-02-16T10:00:00Z", "payload": {"callId": id_}}
    if contract == "streams":
        return event(id_, stream_id="main")
    envelope = {"event_type": "order.placed", "event_version": 1, "occurred_at": "2026-02-16T10:00:00Z"}
    return {**envelope, "idempotency_key": id_, "source": "shop", "payload": {}}


@dataclass
class World:
    hub: Hub = field(default_factory=Hub)
    index: MemoryIndex = field(default_factory=MemoryIndex)
    times: MemoryTimes = field(default_factory=MemoryTimes)
    rows: MemoryRows = field(default_factory=MemoryRows)
    directory: MemoryDirectory = field(default_factory=MemoryDirectory)
    positions: MemoryPositions = field(default_factory=MemoryPositions)
    place: MemoryPlace = field(default_factory=MemoryPlace)

    def commit(self, name: str, count: int, partitions: Sequence[tuple[str, ...]] = ((),), per_page: int = 3) -> None:
        """`count` more events of the ledger's contract."""
        hub, ledger = self.hub, ledger_named(name)
        head = max((page.end for page in hub.log.pages.get(name, {}).values()), default=0)
        drafts = []
        for number in range(head + 1, head + count + 1):
            body = canonical(event_of(ledger.contract, f"{name}-e{number}"))
            drafts.append(Draft(f"{name}-e{number}", digest(body), body, partitions[(number - 1) % len(partitions)]))
        commit = Commit(hub.claims, hub.log, hub.state, hub.heads, in_turn, lambda: hub.now, hub._nonce, lambda _: None)
        for at in range(0, count, per_page):
            commit(ledger, drafts[at : at + per_page], Origin("C1"))

    def catch_up(self) -> None:
        """Every consumer reads every ledger to its end."""
        self.hub.archiver()(self.hub.ledgers())
        for ledger in self.hub.ledgers():
            if ledger.contract == "sync":
                IndexPartitions(self.hub.log, self.hub.state, self.index, lambda: True)(ledger)
            elif ledger.contract == "realtime":
                IndexTimes(self.hub.log, self.hub.state, self.times, lambda: True)(ledger)
            head = max(page.end for page in self.hub.log.pages[ledger.name].values())
            self.hub.state.move_cursor(ledger, "fan_out", self.hub.state.marks(ledger).cursors.get("fan_out", 0), head)

    def lose(self) -> MemoryState:
        """Throw State and the index away; the State that was."""
        before, self.hub.state = self.hub.state, MemoryState()
        self.index, self.times, self.rows = MemoryIndex(), MemoryTimes(), MemoryRows()
        self.hub.lanes.lanes.clear()
        return before

    def rebuild(self, fate: Fate | None = None, *, dry_run: bool = False, with_claims: bool = True) -> Rebuilt:
        fate = fate or Fate()
        log, objects = Mortal(self.hub.log, fate), Mortal(self.hub.objects, fate)
        state: Any = Mortal(self.hub.state, fate)
        index: Any = Mortal(self.index, fate)
        times: Any = Mortal(self.times, fate)
        scan: Any = MemoryClaimScan(self.hub.claims)
        rows: Any = self.rows
        place: Any = self.place
        if dry_run:
            state, index, times, scan, rows, place = (
                DryState(state),
                DryIndex(index),
                DryTimes(times),
                DryClaims(scan),
                DryRows(rows),
                DryPlace(),
            )
        claims = RebuildClaims(log, Mortal(scan, fate)) if with_claims else None
        use_case = Rebuild(
            log_scan=Mortal(MemoryLogScan(self.hub.log), fate),
            claims=claims,
            archive=RebuildArchiveCursors(log, state, objects, in_turn),
            ledger=RebuildLedger(
                log=log,
                state=state,
                claims=claims,
                index=RebuildIndex(log, state, index),
                times=RebuildTimes(IndexTimes(log, state, times, lambda: True)),
                rows=RestoreRows(Mortal(rows, fate), in_turn, lambda: "nonce"),
                together=in_turn,
                clock=lambda: self.hub.now,
            ),
            targets=CheckTargets(self.directory, self.positions, log),
            together=in_turn,
        )
        return use_case(Bookmark.open(place))

    def read(self, ledger: str, partitions: Sequence[str] | None, since: int = 0) -> Any:
        """Every page of a sync, by the index where there is one."""
        sync = Sync(self.hub.log, self.hub.state, self.index, Heads(lambda: self.hub.now), in_turn, direct_span=0)
        pages, to = [], None
        while True:
            page = sync(Ledger.to_read(ledger), partitions, since, 50, 10_000, to)
            pages.append((page.pruned_through, [event.position for event in page.events]))
            since, to = page.next_since, page.sync_to
            if not page.has_more:
                return pages, since, to
