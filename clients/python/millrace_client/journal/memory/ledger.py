"""The delivery ledger in memory: many ledgers per target, a cursor each, and runs of deliveries as one row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from millrace.delivery.domain.ranges import Range, replaced, unfold
from millrace.delivery.domain.states import OPEN, Delivery, Status
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.deliveries import START, Found, Pick, Place, Selection
from millrace_client.journal.memory.journal import Kept, MemoryJournal


@dataclass(slots=True)
class MemoryLedger:
    journals: dict[str, MemoryJournal]
    ranges: dict[tuple[str, str], list[Range]] = field(default_factory=dict)
    cursors: dict[tuple[str, str], int] = field(default_factory=dict)

    def ledgers(self, target: Target, now_ms: int) -> Iterable[str]:  # noqa: ARG002
        return list(self.journals)

    def select(self, target: Target, ledger: str, now_ms: int, events: int, size: int) -> Selection:
        kept = self.journals[ledger].kept
        deliveries = {
            position: delivery
            for position, delivery in self._deliveries(target.id, ledger).items()
            if kept[position - 1].body is not None
        }
        picks: list[Pick] = []
        for position in _due(deliveries, now_ms):
            one = kept[position - 1]
            if one.body is not None and not _put(picks, _pick(one, one.body, deliveries[position]), events, size):
                break
        through = max(self.cursors.get((target.id, ledger), 0), target.start_at)
        if all(delivery.status is not Status.TRANSIENT for delivery in deliveries.values()):
            through = self._fresh(target, ledger, through, picks, events, size)
        return Selection(sorted(picks, key=lambda pick: pick.position), through)

    def begin(self, target: Target, ledger: str, picks: Sequence[Pick]) -> Sequence[Pick]:  # noqa: ARG002
        kept = self.journals[ledger].kept
        still = [pick for pick in picks if kept[pick.position - 1].superseded_by is None]
        for pick in still:
            kept[pick.position - 1].attempted = True
        return still

    def record(self, target: Target, ledger: str, settled: Mapping[int, Delivery], through: int) -> None:
        key = (target.id, ledger)
        before = self._deliveries(*key)
        news = [(at, new) for at, new in sorted(settled.items()) if at not in before or not before[at].delivered]
        self.ranges[key] = replaced(self.ranges.get(key, []), news)
        self.cursors[key] = max(self.cursors.get(key, 0), through)

    def find(self, target_id: str, status: Status | None, after: Place = START, limit: int = 100) -> Sequence[Found]:
        found = [
            self._found(target_id, ledger, position, delivery)
            for ledger in sorted(self.journals)
            for position, delivery in self._deliveries(target_id, ledger).items()
            if (ledger, position) > after and status in (None, delivery.status)
        ]
        return found[:limit]

    def get(self, target_id: str, event_id: str) -> Found | None:
        for ledger, journal in self.journals.items():
            one = journal.by_id.get(event_id)
            delivery = one and self._deliveries(target_id, ledger).get(one.position)
            if one and delivery:
                return self._found(target_id, ledger, one.position, delivery)
        return None

    def replace(self, found: Found, delivery: Delivery) -> bool:
        key = (found.target_id, found.ledger)
        if self._deliveries(*key).get(found.position) != found.delivery:
            return False
        self.ranges[key] = replaced(self.ranges[key], [(found.position, delivery)])
        return True

    def unattempted(self, target: Target, ledger: str) -> int:
        picks: list[Pick] = []
        kept = self.journals[ledger].kept
        self._fresh(target, ledger, target.start_at, picks, len(kept) + 1, sum(len(one.event.body) + 1 for one in kept))
        return len(picks)

    def delivery(self, target_id: str, ledger: str, position: int) -> Delivery | None:
        return self._deliveries(target_id, ledger).get(position)

    def _deliveries(self, target_id: str, ledger: str) -> dict[int, Delivery]:
        return dict(unfold(self.ranges.get((target_id, ledger), [])))

    def _fresh(self, target: Target, ledger: str, through: int, picks: list[Pick], events: int, size: int) -> int:
        deliveries = self._deliveries(target.id, ledger)
        for one in self.journals[ledger].kept[through:]:
            wanted = one.superseded_by is None and target.wants(one.event.event_type, one.family)
            new = wanted and one.position not in deliveries
            if new and one.body is not None and not _put(picks, _pick(one, one.body), events, size):
                break
            through = one.position
        return through

    def _found(self, target_id: str, ledger: str, position: int, delivery: Delivery) -> Found:
        event = self.journals[ledger].kept[position - 1].event
        return Found(target_id, ledger, position, event.event_id, event.event_type, delivery)


def _due(deliveries: Mapping[int, Delivery], now_ms: int) -> list[int]:
    """The transient up to the first whose time has not come, then the others whose time has."""
    transient = [(at, one) for at, one in deliveries.items() if one.status is Status.TRANSIENT]
    waiting = [(one.next_ms or 0, at) for at, one in deliveries.items() if one.status in OPEN - {Status.TRANSIENT}]
    first = [at for at, _ in takewhile(lambda pair: (pair[1].next_ms or 0) <= now_ms, transient)]
    return first + [at for next_ms, at in sorted(waiting) if next_ms <= now_ms]


def _pick(one: Kept, body: bytes, delivery: Delivery | None = None) -> Pick:
    return Pick(one.position, one.event.event_id, body, delivery)


def _put(picks: list[Pick], pick: Pick, events: int, size: int) -> bool:
    used = sum(len(one.body) + 1 for one in picks)
    if picks and (len(picks) >= events or used + len(pick.body) + 1 > size):
        return False
    picks.append(pick)
    return True
