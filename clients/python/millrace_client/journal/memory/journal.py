"""A journal in memory: what captured, imported and removed events leave behind. The delivery ledger reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from millrace.delivery.domain.events import Captured, captured, may_supersede
from millrace.delivery.domain.families import Families, Family
from millrace.delivery.domain.states import Delivery
from millrace.delivery.domain.targets import Target
from millrace.ledger.domain.errors import Conflict, NotFound, Rejected
from millrace_client.journal.migration_ports import (
    Import,
    Imported,
    MigrationConflict,
    OldQueue,
    TwoContents,
    Unreadable,
)
from millrace_client.journal.ports import ArchivedPayload, Retained, Taken


@dataclass(slots=True)
class KeptEvent:
    """An event of the journal; without `body` its bytes were removed."""

    position: int
    event: Captured
    family: Family
    captured_ms: int
    body: bytes | None
    attempted: bool = False
    superseded_by: str | None = None
    archived_to: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    delivered_elsewhere: dict[str, Delivery] = field(default_factory=dict)


@dataclass(slots=True)
class MemoryJournal:
    kept: list[KeptEvent] = field(default_factory=list)
    by_id: dict[str, KeptEvent] = field(default_factory=dict)
    audits: list[tuple[str, str, str]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    delivery_of: Callable[[str, int], Delivery | None] = lambda target_id, position: None  # noqa: ARG005
    rewind: Callable[[int], None] = lambda position: None  # noqa: ARG005
    """Lets every target look again at what comes after a position."""
    open_conflicts: dict[tuple[str, str, bytes], MigrationConflict] = field(default_factory=dict)
    settled_conflicts: dict[tuple[str, str, bytes], MigrationConflict] = field(default_factory=dict)
    replaced: dict[tuple[str, str, bytes], bytes] = field(default_factory=dict)
    """What the journal had when a conflict was found, once it has something else."""

    def capture(self, events: Sequence[tuple[Captured, Family]], now_ms: int) -> Sequence[Taken]:
        new: dict[str, Captured] = {}
        for event, _ in events:
            there = new.setdefault(event.event_id, event)
            stored = self.by_id.get(event.event_id)
            if event.digest != (there if stored is None else stored.event).digest:
                raise Conflict("An event with this id and other content is in the journal.", event_id=event.event_id)
        return [self._take(event, family, now_ms) for event, family in events]

    def audit(self, what: str, subjects: Sequence[str], detail: str, now_ms: int) -> None:  # noqa: ARG002
        self.audits += [(what, subject, detail) for subject in subjects]

    def retained(self) -> Iterator[Retained]:
        for one in list(self.kept):
            if one.body is not None:
                heir = self._heir(one)
                wanting = [
                    target
                    for target in self.targets
                    if target.wants(heir.event.event_type, heir.family) and heir.position > target.start_at
                ]
                deliveries = {target.id: self.delivery_of(target.id, heir.position) for target in wanting}
                yield Retained(
                    one.position,
                    one.event.event_id,
                    one.event.event_type,
                    one.captured_ms,
                    len(one.body),
                    one.superseded_by is not None,
                    deliveries,
                )

    def bodies(self, positions: Sequence[int]) -> Mapping[int, bytes]:
        found = {position: self.kept[position - 1].body for position in positions}
        return {position: body for position, body in found.items() if body is not None}

    def remove(self, positions: Sequence[int], how: str, where: str, now_ms: int) -> None:  # noqa: ARG002
        for position in positions:
            self.kept[position - 1].body = None
            self.kept[position - 1].archived_to = where

    def archived(self) -> Sequence[ArchivedPayload]:
        return [
            ArchivedPayload(one.position, one.event.event_id, len(one.event.body), one.event.digest, one.archived_to)
            for one in self.kept
            if one.archived_to
        ]

    def restore(self, bodies: Mapping[int, bytes], where: str, now_ms: int) -> None:
        for position, body in bodies.items():
            self.kept[position - 1].body = body
            self.kept[position - 1].archived_to = ""
        self.rewind(min(bodies) - 1)
        self.audit("archive_restored", [where], f"{len(bodies)} events", now_ms)

    def take(self, source: OldQueue, rows: Sequence[Import], unreadable: Sequence[Unreadable], now_ms: int) -> Imported:
        fresh = known = conflicts = 0
        for row in rows:
            stored = self.by_id.get(row.event.event_id)
            if stored is not None and stored.event.digest != row.event.digest:
                conflicts += self._conflict(source, row.event.event_id, row.event.body, "other content", now_ms)
                continue
            fresh += stored is None
            known += stored is not None
            self._take(row.event, row.family, now_ms)
            kept = self.by_id[row.event.event_id]
            kept.sources[source.path] = source.scope
            kept.delivered_elsewhere |= row.deliveries
            kept.attempted = kept.attempted or any(delivery.attempts for delivery in row.deliveries.values())
        conflicts += sum(self._conflict(source, bad.event_id, bad.data, bad.reason, now_ms) for bad in unreadable)
        return Imported(fresh, known, conflicts)

    def conflicts(self) -> Sequence[MigrationConflict]:
        return list(self.open_conflicts.values())

    def compare(self, event_id: str) -> Sequence[TwoContents]:
        kept = self.by_id.get(event_id)
        body = None if kept is None else kept.body
        both = self.settled_conflicts | self.open_conflicts
        return [
            TwoContents(conflict, self.replaced.get(key, body), key[2])
            for key, conflict in both.items()
            if key[0] == event_id
        ]

    def resolve(self, event_id: str, keep: str, source: str | None, families: Families, now_ms: int) -> int:
        mine = [
            key for key in self.open_conflicts if key[0] == event_id and (keep == "journal" or source in (None, key[1]))
        ]
        if not mine:
            raise NotFound("This event has no open migration conflict.", event_id=event_id)
        if keep == "source":
            if len(mine) > 1:
                raise Conflict("Several sources have their own content for this event: name one.", event_id=event_id)
            self._put(event_id, mine[0][2], families)
        for key in mine:
            self.settled_conflicts[key] = replace(self.open_conflicts.pop(key), resolved=keep)
            self.audit(f"conflict_resolved_{keep}", [event_id], key[1], now_ms)
        return len(mine)

    def _take(self, event: Captured, family: Family, now_ms: int) -> Taken:
        if event.event_id in self.by_id:
            return Taken(event.event_id, False)
        replaced = next((one for one in self.kept if event.coalesce_key is not None and _replaceable(one, event)), None)
        new = KeptEvent(len(self.kept) + 1, event, family, now_ms, event.body)
        self.kept.append(new)
        self.by_id[event.event_id] = new
        if replaced is None:
            return Taken(event.event_id, True)
        replaced.superseded_by = event.event_id
        return Taken(event.event_id, True, replaced.event.event_id)

    def _heir(self, one: KeptEvent) -> KeptEvent:
        while one.superseded_by is not None:
            one = self.by_id[one.superseded_by]
        return one

    def _conflict(self, source: OldQueue, event_id: str, body: bytes, reason: str, now_ms: int) -> int:
        key = (event_id, source.path, body)
        if key in self.settled_conflicts:
            return 0
        self.open_conflicts.setdefault(key, MigrationConflict(event_id, source.path, reason, now_ms))
        return 1

    def _put(self, event_id: str, body: bytes, families: Families) -> None:
        try:
            event = captured(body)
        except Rejected as error:
            raise Conflict(f"The source's content cannot be kept: {error.message}", event_id=event_id) from error
        stored = self.by_id.get(event_id)
        if stored is None or event.event_id != event_id:
            raise Conflict("The source's content has another event id, and ids are never rewritten.", event_id=event_id)
        if stored.attempted or stored.superseded_by is not None or stored.body is None:
            raise Conflict("A delivery of the journal's content has begun, so it is frozen.", event_id=event_id)
        for key in self.settled_conflicts | self.open_conflicts:
            if key[0] == event_id:
                self.replaced.setdefault(key, stored.body)
        stored.event, stored.body, stored.family = event, body, families.of(event.event_type)
        self.rewind(stored.position - 1)


def _replaceable(one: KeptEvent, event: Captured) -> bool:
    return one.event.coalesce_key == event.coalesce_key and may_supersede(
        attempted=one.attempted, superseded=one.superseded_by is not None, removed=one.body is None
    )
