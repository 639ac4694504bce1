"""Show ledgers: which there are, and how far their readers and their targets have got."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from millrace.delivery.ports.targets import Positions
from millrace.lake.domain.retention_rules import scope_of
from millrace.ledger.application.heads import Heads, newest
from millrace.ledger.domain.access import Identity
from millrace.ledger.domain.consumers import ARCHIVE_CONSUMER, FAN_OUT_CONSUMER, INDEX_CONSUMER
from millrace.ledger.domain.errors import NotFound
from millrace.ledger.domain.names import INDEXED, Ledger
from millrace.ledger.ports import Log, Marks, State, Together
from millrace.operators.application.known_targets import KnownTargets
from millrace.operators.domain.reach import Span, name_of, require_ledger, spans
from millrace.operators.ports import LedgerNames

MOST_SPANS = 100
"""That one page looks into: a token may name hundreds of projects that have no ledger."""

Section = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a ledger and its readers stand; readers by name."""

    ledger: Ledger
    marks: Marks
    head: int
    last_commit_ms: int | None
    stages: Mapping[str, int]
    targets: Mapping[str, int]

    @property
    def readers(self) -> set[int]:
        """Where there is at least one of them."""
        return {*self.stages.values(), *self.targets.values()}


@dataclass(frozen=True, slots=True)
class ShowLedgers:
    registry: LedgerNames
    log: Log
    state: State
    heads: Heads
    targets: KnownTargets
    positions: Positions
    together: Together
    clock: Callable[[], int]

    def __call__(self, identity: Identity, contract: str, prefix: str, after: str, limit: int) -> Section:
        reached = spans(identity, contract, prefix)
        if after:
            begin = name_of(identity.tenant, contract, after) + "\x00"
            reached = [(max(low, begin), high) for low, high in reached if high >= begin]
        names, at = self._names(reached, limit)
        shown = self._shown(identity, [Ledger.to_read(name) for name in names])
        return {"ledgers": shown, "next": None if at is None else scope_of(at).text}

    def one(self, identity: Identity, contract: str, scope: str) -> Section:
        """Raises `NotFound` if nothing was ever committed to it."""
        ledger = require_ledger(identity, contract, scope)
        (shown,) = self._shown(identity, [ledger])
        if shown["head"] == 0:
            raise NotFound("There is no such ledger.", field="scope")
        return shown

    def _names(self, reached: Sequence[Span], limit: int) -> tuple[list[str], str | None]:
        """Names of ledgers, and where to go on; None at the end."""
        names: list[str] = []
        for number, (low, high) in enumerate(reached):
            if number == MOST_SPANS:
                return names, reached[number - 1][1]
            names += self.registry.page(low, high, limit + 1 - len(names))
            if len(names) > limit:
                return names[:limit], names[limit - 1]
        return names, None

    def _shown(self, identity: Identity, ledgers: Sequence[Ledger]) -> list[Section]:
        stands = self._stands(identity, ledgers) if ledgers else []
        behind = [
            (stand, at)
            for stand in stands
            for at in {*stand.stages.values(), *stand.targets.values()}
            if at < stand.head
        ]
        calls = [partial(self._waiting_since, stand.ledger, at) for stand, at in behind]
        waits = self.together(calls) if calls else []
        since = {(stand.ledger.name, at): since_ms for (stand, at), since_ms in zip(behind, waits, strict=True)}
        return [self._ledger_json(stand, since) for stand in stands]

    def _stands(self, identity: Identity, ledgers: Sequence[Ledger]) -> list[Stand]:
        found = self.together([partial(self._look, ledger) for ledger in ledgers])
        positions: dict[str, dict[str, int]] = {ledger.name: {} for ledger in ledgers}
        floors = {ledger.name: marks.floor for ledger, (marks, _, _) in zip(ledgers, found, strict=True)}
        for target in self.targets(identity):
            heard = [ledger.name for ledger in ledgers if target.hears(ledger.name)]
            known = self.positions.of(target.target(), heard) if heard else {}
            for name in heard:
                at = known[name].at if name in known else 0
                positions[name][target.id] = at or floors[name] - 1
        return [
            Stand(ledger, marks, head, last_ms, _stages(ledger, marks), positions[ledger.name])
            for ledger, (marks, head, last_ms) in zip(ledgers, found, strict=True)
        ]

    def _look(self, ledger: Ledger) -> tuple[Marks, int, int | None]:
        marks = self.state.marks(ledger)
        head = newest(self.log, self.heads, ledger, marks.hint)
        page = self.log.holding(ledger, head) if head else None
        return marks, head, page.time_ms if page else None

    def _waiting_since(self, ledger: Ledger, at: int) -> int:
        page = self.log.holding(ledger, at + 1)
        return page.time_ms if page else self.clock()

    def _ledger_json(self, stand: Stand, since: Mapping[tuple[str, int], int]) -> Section:
        scope, now = scope_of(stand.ledger.name), self.clock()

        def reader(at: int) -> Section:
            waits_ms = now - since.get((stand.ledger.name, at), now)
            return {
                "position": at,
                "lag_events": max(0, stand.head - at),
                "lag_seconds": round(max(0, waits_ms) / 1000, 1),
            }

        return {
            "contract": scope.contract,
            "scope": scope.text,
            "head": stand.head,
            "floor": stand.marks.floor,
            "events": max(0, stand.head - stand.marks.floor + 1),
            "last_commit_ms": stand.last_commit_ms,
            "stages": {stage: reader(at) for stage, at in stand.stages.items()},
            "targets": [{"target_id": id_, **reader(at)} for id_, at in sorted(stand.targets.items())],
        }


def _stages(ledger: Ledger, marks: Marks) -> dict[str, int]:
    consumers = [INDEX_CONSUMER] if ledger.contract in INDEXED else []
    consumers += [FAN_OUT_CONSUMER, ARCHIVE_CONSUMER]
    return {consumer: marks.cursors.get(consumer, 0) for consumer in consumers}
