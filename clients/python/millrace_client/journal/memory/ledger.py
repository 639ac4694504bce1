"""The delivery ledger in memory: many ledgers per target, a cursor each, and runs of deliveries as one row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from millrace.delivery.domain.ranges import Range, replaced, unfold
from millrace.delivery.domain.selection import HOLDING, WAITING, Batch, NewEvent, OpenRun, Pick, Selection, choose
from millrace.delivery.domain.states import Delivery, Status
from millrace.delivery.domain.targets import Target
from millrace.delivery.ports.deliveries import START, Found, Place
from millrace_client.journal.memory.journal import MemoryJournal


@dataclass(slots=True)
class MemoryLedger:
    journals: dict[str, MemoryJournal]
    ranges: dict[tuple[str, str], list[Range]] = field(default_factory=dict)
    cursors: dict[tuple[str, str], int] = field(default_factory=dict)

    def ledgers(self, target: Target, now_ms: int) -> Iterable[str]:  # noqa: ARG002
        return list(self.journals)

    def select(self, target: Target, ledger: str, now_ms: int, events: int, size: int) -> Selection:
        cursor = max(self.cursors.get((target.id, ledger), 0), target.start_at)
        return choose(
            target,
            Batch(events, size),
            now_ms,
            cursor,
            transient=self._open(target.id, ledger, {HOLDING}),
            waiting=sorted(self._open(target.id, ledger, WAITING), key=lambda run: run.delivery.next_ms or 0),
            new=self._new(target.id, ledger, cursor),
        )

    def begin(self, target: Target, ledger: str, picks: Sequence[Pick]) -> Sequence[Pick]:  # noqa: ARG002
        kept = self.journals[ledger].kept
        still = [pick for pick in picks if kept[pick.position - 1].superseded_by is None]
        for pick in still:
            kept[pick.position - 1].attempted = True
        return still

    def record(self, target: Target, ledger: str, settled: Mapping[int, Delivery], through: int) -> None:
        key = (target.id, ledger)
        before = self._deliveries(*key)
        told = [(at, _kept(new)) for at, new in sorted(settled.items())]
        news = [(at, new) for at, new in told if at not in before or not before[at].delivered]
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
        self.ranges[key] = replaced(self.ranges[key], [(found.position, _kept(delivery))])
        return True

    def rewind(self, ledger: str, position: int) -> None:
        """Look again at what comes after it: what has a delivery is passed over."""
        self.cursors = {key: min(at, position) if key[1] == ledger else at for key, at in self.cursors.items()}

    def unattempted(self, target: Target, ledger: str) -> int:
        new = self._new(target.id, ledger, target.start_at)
        return sum(event.wanted_by(target) is not None for event in new)

    def delivery(self, target_id: str, ledger: str, position: int) -> Delivery | None:
        return self._deliveries(target_id, ledger).get(position)

    def _deliveries(self, target_id: str, ledger: str) -> dict[int, Delivery]:
        return dict(unfold(self.ranges.get((target_id, ledger), [])))

    def _open(self, target_id: str, ledger: str, statuses: Collection[Status]) -> Iterator[OpenRun]:
        for position, delivery in self._deliveries(target_id, ledger).items():
            one = self.journals[ledger].kept[position - 1]
            if delivery.status in statuses and one.body is not None:
                yield OpenRun(delivery, [Pick(position, one.event.event_id, one.body, delivery)])

    def _new(self, target_id: str, ledger: str, cursor: int) -> Iterator[NewEvent]:
        deliveries = self._deliveries(target_id, ledger)
        for one in self.journals[ledger].kept[cursor:]:
            gone = one.superseded_by is not None or one.position in deliveries or one.body is None
            pick = None if gone else Pick(one.position, one.event.event_id, one.body or b"")
            yield NewEvent(one.position, one.event.event_type, one.family, pick)

    def _found(self, target_id: str, ledger: str, position: int, delivery: Delivery) -> Found:
        event = self.journals[ledger].kept[position - 1].event
        return Found(target_id, ledger, position, event.event_id, event.event_type, delivery)


def _kept(delivery: Delivery) -> Delivery:
    """A client keeps the last attempt alone."""
    return replace(delivery, earlier=())
