"""Show overview: how the whole pipeline stands, and what is wrong. It looks at a bounded part of a hub of any size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from millrace.delivery.domain.states import Status
from millrace.delivery.ports.targets import Kept, Listing
from millrace.lake.domain.retention_rules import CONTRACTS
from millrace.ledger.application.read_log import ReadLog
from millrace.ledger.domain.access import OPERATOR, Identity
from millrace.ledger.domain.names import Ledger
from millrace.ledger.ports import Log, Together
from millrace.operators.application.known_targets import KnownTargets
from millrace.operators.application.show_connections import ShowConnections
from millrace.operators.application.show_ledgers import ShowLedgers
from millrace.operators.domain.problems import LATE_SECONDS, TARGETS, TargetHealth, problems
from millrace.operators.domain.reach import name_of
from millrace.streams.ports import DegradedSubscriptions

LEDGERS = 20
"""Of each contract, the first by name."""
CONNECTIONS = 100
DEGRADED = 100
"""Of each stream."""
TARGETS_COUNTED, RUNS_COUNTED = 20, 100
BUSY_LEDGERS, LAST_EVENTS = 10, 200
"""How many ledgers, of those that had an event lately, are read for the events per minute, and how far back."""
HOUR_MS, MINUTE_MS = 3_600_000, 60_000
MOST_PROBLEMS = 50

Section = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ShowOverview:
    ledgers: ShowLedgers
    connections: ShowConnections
    targets: KnownTargets
    listing: Listing
    degraded: DegradedSubscriptions
    log: Log
    together: Together
    clock: Callable[[], int]

    def __call__(self, identity: Identity) -> Section:
        identity.require(OPERATOR)
        pages = [self.ledgers(identity, contract, "", "", LEDGERS) for contract in CONTRACTS]
        ledgers = [ledger for page in pages for ledger in page["ledgers"]]
        sockets = self.connections(identity, "", "", CONNECTIONS)
        health = self._health(self.targets.kept(identity))
        degraded = self._degraded(identity, ledgers)
        found = problems(ledgers, health, degraded)
        stands = Counter(one.stand for one in health)
        return {
            "looked_at": len(ledgers),
            "more": any(page["next"] is not None for page in (*pages, sockets)) or len(found) > MOST_PROBLEMS,
            "stages": {stage: _stage(stage, ledgers) for stage in LATE_SECONDS},
            "events_per_minute": self._per_minute(identity, ledgers),
            "targets": {stand: stands[stand] for stand in ("well", "paused", "blocked")},
            "connections": len(sockets["connections"]),
            "subscriptions": sum(len(one["subscriptions"]) for one in sockets["connections"]),
            "degraded": sum(count for _, count in degraded),
            "problems": found[:MOST_PROBLEMS],
        }

    def _health(self, kept: Sequence[Kept]) -> list[TargetHealth]:
        given_up_by = partial(self.listing.count_some, most_runs=RUNS_COUNTED, status=Status.TERMINAL_FAILED)
        calls = [partial(given_up_by, one.target.key) for one in kept[:TARGETS_COUNTED]]
        counted = self.together(calls) if calls else []
        given_up = [one.counts.get(Status.TERMINAL_FAILED, 0) for one in counted]
        given_up += [0] * (len(kept) - len(given_up))
        return [_health(one, count, self.clock()) for one, count in zip(kept, given_up, strict=True)]

    def _degraded(self, identity: Identity, ledgers: Sequence[Section]) -> list[tuple[str, int]]:
        scopes = [ledger["scope"] for ledger in ledgers if ledger["contract"] == "streams"]
        streams = [Ledger.to_read(name_of(identity.tenant, "streams", scope)) for scope in scopes]
        calls = [partial(self.degraded.degraded_after, stream, "", DEGRADED) for stream in streams]
        found = self.together(calls) if calls else []
        return [(scope, len(marked)) for scope, marked in zip(scopes, found, strict=True) if marked]

    def _per_minute(self, identity: Identity, ledgers: Sequence[Section]) -> Section:
        """Counted from the log itself, backwards from the heads of those that had an event last."""
        since = self.clock() // MINUTE_MS * MINUTE_MS - HOUR_MS + MINUTE_MS
        busy = sorted(
            (one for one in ledgers if (one["last_commit_ms"] or 0) >= since), key=lambda one: -one["last_commit_ms"]
        )
        calls = [partial(self._lately, identity, one, since) for one in busy[:BUSY_LEDGERS]]
        counted: list[tuple[Counter[int], bool]] = self.together(calls) if calls else []
        by_contract: dict[str, Counter[int]] = {}
        for one, (events, _) in zip(busy, counted, strict=False):
            by_contract.setdefault(one["contract"], Counter()).update(events)
        total = sum(by_contract.values(), Counter())
        return {
            "minutes": _minutes(total),
            "by_contract": {contract: _minutes(by_contract[contract]) for contract in sorted(by_contract)},
            "truncated": len(busy) > BUSY_LEDGERS or any(cut for _, cut in counted),
        }

    def _lately(self, identity: Identity, shown: Section, since: int) -> tuple[Counter[int], bool]:
        """Events by minute; and whether there may be more of this hour."""
        ledger = Ledger.to_read(name_of(identity.tenant, shown["contract"], shown["scope"]))
        head, after = shown["head"], max(0, shown["head"] - LAST_EVENTS)
        pages = ReadLog(self.log, self.together)(ledger, after, head, LAST_EVENTS)
        counts: Counter[int] = Counter()
        for page in pages:
            if page.time_ms >= since:
                counts[page.time_ms // MINUTE_MS * MINUTE_MS] += page.end - max(page.first, after + 1) + 1
        return counts, after > 0 and (not pages or pages[0].time_ms >= since)


def _minutes(counts: Counter[int]) -> list[Section]:
    return [{"minute_ms": minute, "events": counts[minute]} for minute in sorted(counts)]


def _stage(stage: str, ledgers: Sequence[Section]) -> Section:
    """Over all ledgers; a target that is behind in one counts it as behind.

    A gap is where the next event that a reader needs was pruned: nothing prunes what a stage still needs.
    """
    having = [one for one in ledgers if _has(stage, one)]
    readers = [one["targets"] if stage == TARGETS else [one["stages"][stage]] for one in having]
    every = [reader for some in readers for reader in some]
    return {
        "events_read": sum(reader["position"] for reader in every),
        "gaps": sum(
            any(reader["position"] < one["floor"] - 1 for reader in some)
            for one, some in zip(having, readers, strict=True)
        ),
        "worst_lag_seconds": max((reader["lag_seconds"] for reader in every), default=0),
        "lag_events": sum(reader["lag_events"] for reader in every),
        "ledgers_behind": sum(any(reader["lag_events"] for reader in some) for some in readers),
    }


def _has(stage: str, ledger: Section) -> bool:
    return stage == TARGETS or stage in ledger["stages"]


def _health(kept: Kept, given_up: int, now_ms: int) -> TargetHealth:
    state = kept.state
    paused = state.paused_why or ("an operator paused it" if kept.target.paused else "")
    blocked = ""
    if state.blocked or not state.circuit.allows(now_ms):
        blocked = state.blocked_detail or state.blocked or "it failed too often, and is left alone for a while"
    return TargetHealth(kept.target.id, paused.rstrip("."), blocked.rstrip("."), given_up)
