"""What happened in a run, and whether the promises held."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from millrace.ledger.application.commit import Outcome
from millrace.ledger.domain.names import Ledger
from millrace.ledger.domain.page import Draft, Event, Page
from millrace.sync.domain.read import SyncPage
from tests.simulation.tables import Tables


@dataclass(frozen=True, slots=True)
class Answer:
    ledger: Ledger
    draft: Draft
    outcome: Outcome
    sent: int
    """The step at which this request began."""
    answered: int
    request: int
    """Its number."""
    stopped: bool
    """By a conflict of an event before it in its request."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A reader's whole sync cycle: its first request began at `sent`."""

    ledger: Ledger
    partitions: frozenset[str] | None
    since: int
    pages: Sequence[SyncPage]
    sent: int
    finished: bool


@dataclass(slots=True)
class History:
    answers: list[Answer] = field(default_factory=list)
    cycles: list[Cycle] = field(default_factory=list)
    first_sent: dict[tuple[str, str], int] = field(default_factory=dict)
    """Per (ledger, id): the step at which anybody first tried to commit it."""
    prunable: dict[str, int] = field(default_factory=dict)
    """Per ledger: the highest position that pruning was ever allowed to empty."""


@dataclass(frozen=True, slots=True)
class Held:
    """A run, or many, in which every promise held."""

    events: int = 0
    """That were committed."""
    fingerprint: int = 0
    """Another one when anything went differently."""

    def __add__(self, other: Held) -> Held:
        return Held(self.events + other.events, (self.fingerprint + other.fingerprint) % 2**32)


def held(tables: Tables, *told: object) -> Held:
    pages = [page for pages in tables.log.pages.values() for page in pages.values()]
    return Held(sum(len(page.records) for page in pages), zlib.crc32(repr((pages, told)).encode()))


def broken(condition: object, *what: object) -> None:
    if condition:
        raise AssertionError(" ".join(map(str, what)))


def check(history: History, tables: Tables, ledgers: Iterable[Ledger]) -> None:
    logs = {ledger.name: [event for page in chain(tables, ledger) for event in page.events()] for ledger in ledgers}
    by_id = {name: {event.record.id: event for event in reversed(log)} for name, log in logs.items()}
    by_position = {name: {event.position: event for event in log} for name, log in logs.items()}
    check_unique(tables, ledgers)
    for ledger in ledgers:
        broken(logs[ledger.name] and ledger.name not in tables.state.registry, "unregistered ledger", ledger.name)
    for answer in history.answers:
        _check_answer(answer, by_id[answer.ledger.name].get(answer.draft.id), tables)
    _check_order(history)
    for cycle in history.cycles:
        _check_cycle(cycle, by_position[cycle.ledger.name], history)
    _check_bodies(history, logs)


def chain(tables: Tables, ledger: Ledger) -> list[Page]:
    """Positions are dense and unique: pages chain from 1, and there is none beside the chain."""
    pages = tables.log.pages.get(ledger.name, {})
    chain: list[Page] = []
    position = 1
    while position in pages:
        chain.append(pages[position])
        position = pages[position].end + 1
    broken(len(chain) != len(pages), "pages beside the chain: holes or overlaps in", ledger.name, sorted(pages))
    return chain


def check_unique(tables: Tables, ledgers: Iterable[Ledger]) -> None:
    """One id of a dedupe scope is never committed twice, in whatever ledger."""
    where: dict[tuple[str, str], str] = {}
    for ledger in ledgers:
        for page in tables.log.pages.get(ledger.name, {}).values():
            for event in page.events():
                key, place = (ledger.dedupe_scope, event.record.id), f"{ledger.name}@{event.position}"
                broken(key in where, "committed twice:", event.record.id, where.get(key), place)
                where[key] = place


def _check_answer(answer: Answer, record: Event | None, tables: Tables) -> None:
    """What was acknowledged is there and stays; a conflict is only answered where there is one."""
    outcome, draft = answer.outcome, answer.draft
    if outcome.position is None:
        bound = tables.claims.items[answer.ledger.dedupe_scope, draft.id].ledger
        differs = answer.stopped or (record is not None and record.record.digest != draft.digest)
        broken(bound == answer.ledger.name and not differs, "a conflict was answered where there is none:", draft.id)
        return
    broken(record is None, "acknowledged but not in the log:", draft.id, outcome)
    assert record is not None
    broken(record.position != outcome.position, "acknowledged at another position:", draft.id, outcome, record.position)
    broken(record.record.digest != draft.digest, "acknowledged with other content:", draft.id)
    broken(record.time_ms != outcome.time_ms, "acknowledged with another time:", draft.id)


def _check_order(history: History) -> None:
    """If A was answered before B was first sent, A stands before B."""
    committed = [answer for answer in history.answers if answer.outcome.position is not None]
    for a in committed:
        for b in committed:
            later = a.answered < history.first_sent[b.ledger.name, b.draft.id]
            wrong = later and a.ledger == b.ledger and (a.outcome.position or 0) >= (b.outcome.position or 0)
            broken(wrong, "order: ", a.draft.id, "was answered before", b.draft.id, "was sent, yet stands after it")


def _check_cycle(cycle: Cycle, known: Mapping[int, Event], history: History) -> None:
    """The pages of a cycle are the model's prefix: nothing missing, doubled, out of order or past the watermark."""
    if not cycle.pages:
        return
    sync_to = cycle.pages[0].sync_to
    broken(any(page.sync_to != sync_to for page in cycle.pages), "sync_to changed within a cycle")
    acknowledged = [
        answer.outcome.position or 0
        for answer in history.answers
        if answer.ledger == cycle.ledger and answer.answered < cycle.sent
    ]
    broken(sync_to < max(acknowledged, default=0), "a sync began after an answer but does not reach it", sync_to)
    reached = cycle.since
    got: list[int] = []
    for page in cycle.pages:
        broken(page.next_since < reached, "next_since went back")
        positions = [event.position for event in page.events]
        broken(positions != sorted(set(positions)), "a page is out of order", positions)
        broken(any(not reached < p <= page.next_since for p in positions), "a page reaches past its own end", positions)
        _check_lost(cycle, known, reached, page)
        reached = page.next_since
        got += positions
    broken(cycle.finished and reached != max(sync_to, cycle.since), "the last page does not end at sync_to")
    _check_complete(cycle, known, got, min(reached, sync_to))


def _touches(cycle: Cycle, event: Event) -> bool:
    return cycle.partitions is None or not cycle.partitions.isdisjoint(event.record.partitions)


def _check_lost(cycle: Cycle, known: Mapping[int, Event], since: int, page: SyncPage) -> None:
    """S6: a page tells the last of its partitions' events that it had to leave out, or that it left out none."""
    told = {event.position for event in page.events}
    here = [known[position] for position in range(since + 1, page.next_since + 1) if position in known]
    lost = [e.position for e in here if e.record.body is None and e.position not in told and _touches(cycle, e)]
    broken(page.pruned_through != max(lost, default=None), "pruned through", page.pruned_through, "but lost", lost)


def _check_complete(cycle: Cycle, known: Mapping[int, Event], got: Sequence[int], through: int) -> None:
    told = set(got)
    for page in cycle.pages:
        for event in page.events:
            committed = known.get(event.position)
            broken(committed is None, "a reader saw a position that is not in the log:", event.position)
            assert committed is not None
            broken(committed.record.id != event.record.id, "a reader saw another event at", event.position)
    for position, event in known.items():
        touches = _touches(cycle, event)
        if cycle.since < position <= through:
            missing = touches and position not in told and event.record.body is not None
            broken(missing, "a sync skipped position", position, "of", cycle.ledger.name)
            broken(
                not touches and position in told, "a sync gave an event of a partition it was not asked for", position
            )


def _check_bodies(history: History, logs: Mapping[str, Sequence[Event]]) -> None:
    for name, log in logs.items():
        for event in log:
            early = event.record.body is None and event.position > history.prunable.get(name, 0)
            broken(early, "a body went too early:", name, event.position)
