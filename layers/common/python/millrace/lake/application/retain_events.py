"""Retain events: prune, in every ledger that has a policy, what nobody needs any more (C8).

Whatever may be pruned has been archived and compacted. A run first writes a manifest of what is to go, then takes the
bodies out page by page, then writes what went. It may stop anywhere: the next run plans anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from millrace.lake.application.plan_retention import Plan, PlanRetention
from millrace.lake.domain.archive import sortable_time, tenant_of
from millrace.lake.domain.retention_rules import Rules, Ruling, ruling
from millrace.lake.ports.objects import Objects
from millrace.lake.ports.retention import Holder, Policies
from millrace.ledger.application.prune import Prune, Pruned
from millrace.ledger.domain.consumers import ARCHIVE_CONSUMER, FAN_OUT_CONSUMER, INDEX_CONSUMER
from millrace.ledger.domain.names import INDEXED, Ledger
from millrace.ledger.domain.page import Event
from millrace.ledger.domain.ranges import Ranges
from millrace.ledger.ports import Log, Marks, State, Together

MANIFESTS = "retention/"
COMPACTION = "compaction"
SIDE_BY_SIDE = 64
PER_MANIFEST = 1_000
T = TypeVar("T")


def consumers_of(ledger: Ledger, indexed: Collection[str] = INDEXED) -> tuple[str, ...]:
    """Whose cursors a ledger's pruning must not pass."""
    always = (ARCHIVE_CONSUMER, FAN_OUT_CONSUMER)
    return (*always, INDEX_CONSUMER) if ledger.contract in indexed else always


def _needs_nothing(_ledger: Ledger, through: int) -> int:
    return through


@dataclass(frozen=True, slots=True)
class PruneRanges:
    """Take the bodies at given positions out of a ledger; what its consumers have not read stays nevertheless."""

    log: Log
    state: State
    may_go_on: Callable[[], bool]
    keep: Callable[[Ledger, int], int] = _needs_nothing
    """Stores what must outlive the events up to a position, and answers up to which one it is stored. Nothing above
    that goes."""

    def __call__(self, ledger: str, goes: Ranges) -> Pruned:
        """Not complete when time ran out or a consumer is behind: the same call again goes on."""
        of = Ledger.to_read(ledger)
        prune = Prune(self.log, self.state, consumers_of(of), self.may_go_on)

        def may_go(event: Event) -> bool:
            return event.position in goes

        if not goes:
            return Pruned(0, complete=True)
        kept = self.keep(of, goes.last)
        pruned = prune(of, min(goes.last, kept), may_go)
        return replace(pruned, complete=pruned.complete and kept >= goes.last)


@dataclass(slots=True)
class RetentionReport:
    """`plans` is what was found to go, `removed` what went of it; `manifest` the name under which that is kept."""

    plans: list[Plan] = field(default_factory=list)
    removed: dict[str, int] = field(default_factory=dict)
    manifest: str | None = None
    complete: bool = True
    """False when time ran out before the end; another run goes on."""

    def as_json(self) -> dict[str, Any]:
        return {
            "ledgers": [plan.as_json() | self._removed(plan) for plan in self.plans],
            "events": sum(plan.goes.count for plan in self.plans),
            "bytes": sum(plan.bytes for plan in self.plans),
            "removed": sum(self.removed.values()),
            "manifest": self.manifest,
            "complete": self.complete,
        }

    def _removed(self, plan: Plan) -> dict[str, int]:
        return {"removed": self.removed[plan.ledger.name]} if plan.ledger.name in self.removed else {}


@dataclass(frozen=True, slots=True)
class RetainEvents:
    policies: Policies
    plan: PlanRetention
    state: State
    prune: Callable[[str, Ranges], Pruned]
    compacted: Callable[[], Holder]
    """How far compaction has come, as of the call. Asked for after the archive's cursors were read: what is archived
    later must not count as compacted."""
    holders: Mapping[str, Holder]
    objects: Objects
    together: Together
    clock: Callable[[], int]
    new_run: Callable[[], str]
    may_go_on: Callable[[], bool]

    def __call__(self, *, dry_run: bool) -> RetentionReport:
        report = RetentionReport()
        ruled = list(self._ruled())
        compacted = self.compacted()
        for group in _groups(ruled, SIDE_BY_SIDE):
            if not self.may_go_on():
                report.complete = False
                break
            report.plans += self.together([partial(self._plan, *one, compacted) for one in group])
        if not dry_run:
            self.go(report)
        return report

    def _ruled(self) -> Iterator[tuple[Ledger, Ruling, Marks]]:
        """The ledgers that have a policy."""
        rules: dict[str, Rules] = {}
        for group in _groups(self.state.ledgers(), SIDE_BY_SIDE):
            found = []
            for ledger in group:
                tenant = tenant_of(ledger.name)
                if tenant not in rules:
                    rules[tenant] = self.policies.of_tenant(tenant)
                rule = ruling(ledger.name, rules[tenant])
                if not rule.is_empty:
                    found.append((ledger, rule))
            marks = self.together([partial(self.state.marks, ledger) for ledger, _ in found]) if found else []
            yield from ((ledger, rule, one) for (ledger, rule), one in zip(found, marks, strict=True))

    def _plan(self, ledger: Ledger, rule: Ruling, marks: Marks, compacted: Holder) -> Plan:
        holders = {consumer: marks.cursors.get(consumer, 0) for consumer in consumers_of(ledger)}
        for name, holder in {**self.holders, COMPACTION: compacted}.items():
            held = holder(ledger)
            if held is not None:
                holders[name] = held
        return self.plan(ledger, rule, marks, holders)

    def go(self, report: RetentionReport) -> None:
        """Prune what a dry run found; the report is brought up to date. Who reads may only have come further."""
        going = [plan for plan in report.plans if plan.goes]
        if not going:
            return
        report.manifest = f"{MANIFESTS}{sortable_time(self.clock())}-{self.new_run()}/"
        for number, group in enumerate(_groups(going, PER_MANIFEST)):
            self._put(f"{report.manifest}plan-{number:04}.json", [plan.as_json() for plan in group])
        for plan in going:
            if not self.may_go_on():
                report.complete = False
                break
            pruned = self.prune(plan.ledger.name, plan.goes)
            report.removed[plan.ledger.name] = pruned.removed
            report.complete = report.complete and pruned.complete
        self._put(f"{report.manifest}done.json", {"removed": report.removed, "complete": report.complete})

    def _put(self, name: str, content: Any) -> None:
        self.objects.put(name, json.dumps(content, ensure_ascii=False, indent=1).encode())


def _groups(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while group := list(islice(rest, size)):
        yield group
