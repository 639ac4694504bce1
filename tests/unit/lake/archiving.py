"""A hub in memory whose archivers can die at any call, and the proof that the archive is what the log is."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from millrace.lake.adapters.memory.lanes import MemoryLanes
from millrace.lake.adapters.memory.objects import MemoryObjects
from millrace.lake.application.archive_events import ArchiveEvents
from millrace.lake.application.gather_archive import DEFAULT, ObjectLimits
from millrace.lake.domain.archive import read_lines
from millrace.lake.domain.wrapping import wrap
from millrace.ledger.adapters.memory import MemoryClaims, MemoryLog, MemoryState, in_turn
from millrace.ledger.application.commit import Commit
from millrace.ledger.application.heads import Heads
from millrace.ledger.domain.canonical import canonical, digest
from millrace.ledger.domain.consumers import ARCHIVE_CONSUMER
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Event, Origin

NOW_MS = 1_771_236_000_000


class Died(BaseException):
    """The process ended at this call."""


@dataclass(slots=True)
class Fate:
    """Counts calls; dies before or after the effect of one of them."""

    at: int = -1
    after_effect: bool = False
    calls: int = 0

    def __call__(self, effect: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        number, self.calls = self.calls, self.calls + 1
        if number == self.at and not self.after_effect:
            raise Died
        result = effect(*arguments, **named)
        if number == self.at:
            raise Died
        return result


@dataclass(frozen=True, slots=True)
class Mortal:
    """Any port, each call of which is in fate's hands."""

    inner: Any
    fate: Fate

    def __getattr__(self, name: str) -> Any:
        effect = getattr(self.inner, name)
        return lambda *arguments, **named: self.fate(effect, *arguments, **named)


@dataclass(slots=True)
class Hub:
    log: MemoryLog = field(default_factory=MemoryLog)
    state: MemoryState = field(default_factory=MemoryState)
    claims: MemoryClaims = field(default_factory=MemoryClaims)
    lanes: MemoryLanes = field(default_factory=MemoryLanes)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
    now: int = NOW_MS
    heads: Heads = field(init=False)

    def __post_init__(self) -> None:
        self.heads = Heads(lambda: self.now)

    def commit(self, ledger: str, count: int, partitions: Sequence[tuple[str, ...]] = ((),), per_page: int = 3) -> None:
        """`count` more events, so many a page; their partitions in turn."""
        head = max((page.end for page in self.log.pages.get(ledger, {}).values()), default=0)
        drafts = [
            _draft(ledger, head + number, partitions[(head + number - 1) % len(partitions)])
            for number in range(1, count + 1)
        ]
        self.commit_drafts(ledger, drafts, per_page)

    def commit_drafts(self, ledger: str, drafts: Sequence[Draft], per_page: int = 3) -> None:
        of = Ledger(ledger, ledger)
        commit = Commit(
            self.claims, self.log, self.state, self.heads, in_turn, lambda: self.now, self._nonce, lambda _: None
        )
        for at in range(0, len(drafts), per_page):
            commit(of, drafts[at : at + per_page], Origin("C1"))

    def _nonce(self) -> bytes:
        self.now += 1
        return str(self.now).encode()

    def archiver(self, fate: Fate | None = None, limits: ObjectLimits = DEFAULT) -> ArchiveEvents:
        fate = fate or Fate()
        return ArchiveEvents(
            Mortal(self.log, fate),
            Mortal(self.state, fate),
            Mortal(self.lanes, fate),
            Mortal(self.objects, fate),
            in_turn,
            lambda _: None,
            lambda: True,
            limits,
        )

    def ledgers(self) -> list[Ledger]:
        return [Ledger.to_read(name) for name in sorted(self.log.pages)]

    def events(self) -> dict[tuple[str, int], Event]:
        return {
            (name, event.position): event
            for name, pages in self.log.pages.items()
            for page in pages.values()
            for event in page.events()
        }

    def archived(self) -> list[tuple[str, int]]:
        return [
            (line["ledger"], line["sequence_position"])
            for name, data in sorted(self.objects.stored.items())
            if name.startswith("ledger/")
            for line in read_lines(data)
        ]

    def cursor(self, ledger: Ledger) -> int:
        return self.state.marks(ledger).cursors.get(ARCHIVE_CONSUMER, 0)


def prove(hub: Hub) -> None:
    """Every position of every ledger is in the archive once, as it was committed; the cursors stand at the heads."""
    events, archived = hub.events(), hub.archived()
    assert len(set(archived)) == len(archived), "a position is archived twice"
    assert set(archived) == set(events), "a position is missing, or made up"
    for data in (data for name, data in hub.objects.stored.items() if name.startswith("ledger/")):
        for line in read_lines(data):
            event = events[line["ledger"], line["sequence_position"]]
            if event.record.body is not None:
                told = wrap(line["ledger"], event.record, event.position, event.time_ms)
                assert line["idempotency_key"] == told.idempotency_key
                assert canonical(line["payload"]) == told.payload
                assert line["committed_at"] == event.time_ms
        assert gzip.decompress(data).endswith(b"}\n")
    for ledger in hub.ledgers():
        assert hub.cursor(ledger) == max(position for name, position in events if name == ledger.name)
    assert all(lane.reservation is None for lane in hub.lanes.lanes.values())


def _draft(ledger: str, number: int, partitions: tuple[str, ...]) -> Draft:
    body = canonical({"event": {"type": "t", "payload": {"n": number, "in": ledger}}})
    return Draft(f"{ledger}-e{number}", digest(body), body, tuple(sorted(partitions)))
