"""What streams cost in DynamoDB: a poll, an emission beside the bare commit, a delivery transition, a marker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from millrace.ledger.domain.consumers import FAN_OUT_CONSUMER
from millrace.streams.application.emit import Emitted
from millrace.streams.domain.errors import Conflict
from tests.bench.events import IDENTITY
from tests.bench.rig import Rig
from tests.bench.scenarios import duplicate, fresh
from tests.bench.stream_events import stream_events, transitions
from tests.bench.stream_hub import Process, new_runtime, process, stored
from tests.bench.tally import Counts

TABLES = ("claims", "log", "state")
POLLED = 256
FEW = 10
POLLS = 10
ACROSS_BUCKETS = 5
"""So many polls read on into a second bucket."""
PER_PAGE = (1, 25, 100)
LISTED = 100
MOVES = 20
_SEEDS = count(1_200_000)


@dataclass(frozen=True, slots=True)
class Cost:
    counts: Counts
    times: int = 1
    """How many requests were counted together."""
    worst_rounds: int = 0

    @property
    def calls(self) -> float:
        return round(self.counts.calls_to(*TABLES) / self.times, 1)

    @property
    def writes(self) -> int:
        return self.counts.write_units(*TABLES)

    @property
    def reads(self) -> float:
        return round(self.counts.read_units(*TABLES) / self.times, 1)

    @property
    def rounds(self) -> int:
        """Of the worst request."""
        return self.worst_rounds or self.counts.rounds

    def row(self) -> dict[str, Any]:
        return {"calls": self.calls, "round trips": self.rounds, "write units": self.writes, "read units": self.reads}


def polls(rig: Rig, per_page: int, times: int = POLLS) -> dict[str, tuple[int, Cost]]:
    """A stream read from its beginning by so many polls: per kind of poll, the events of one and what it cost."""
    runtime, stream = new_runtime(rig), "polled"
    ledger = stored(rig, runtime, stream, "realistic", times * POLLED, per_page)
    reader = process(rig, runtime)
    with rig.tally.measured() as first:
        batch = reader.polled(stream, None)
    assert len(batch.events) == POLLED
    worst, beginning = 0, batch.next_cursor
    with rig.tally.measured() as following:
        for _ in range(times - 1):
            before = rig.tally.rounds.spent
            batch = reader.polled(stream, batch.next_cursor)
            worst = max(worst, rig.tally.rounds.spent - before)
            assert len(batch.events) == POLLED
    with rig.tally.measured() as few:
        assert len(process(rig, runtime).polled(stream, beginning, FEW).events) == FEW
    with rig.tally.measured() as early:
        assert not process(rig, runtime).polled(stream, batch.next_cursor).events
    assert rig.state.move_cursor(ledger, FAN_OUT_CONSUMER, 0, times * POLLED)
    with rig.tally.measured() as empty:
        assert not process(rig, runtime).polled(stream, batch.next_cursor).events
    return {
        "without cursor": (POLLED, Cost(first)),
        "with a cursor": (POLLED, Cost(following, times - 1, worst)),
        f"with a cursor, max {FEW}": (FEW, Cost(few)),
        "at the head": (0, Cost(empty)),
        "at the head, not broadcast yet": (0, Cost(early)),
    }


def poll_rows(rig: Rig) -> list[dict[str, Any]]:
    return [
        {
            "events a page": per_page,
            "poll": name,
            "events": events,
            "calls": cost.calls,
            "round trips, worst": cost.rounds,
            "read units": cost.reads,
        }
        for per_page in PER_PAGE
        for name, (events, cost) in polls(rig, per_page).items()
    ]


def emission(rig: Rig, events: int, kind: str = "realistic", *, again: bool = False) -> Cost:
    """By a process that has emitted into the stream a moment ago; or the same events a second time."""
    writer = _warm(rig)
    batch = stream_events(kind, events, next(_SEEDS), writer.runtime)
    if again:
        writer.emitted("bench-stream", batch)
    return _emitting(rig, writer, batch, deduped=again)


def transition(rig: Rig, messages: int, states: Sequence[str] = ("queued",), *, again: bool = False) -> Cost:
    """The last of the states, one transition of each message; those before it are emitted uncounted."""
    writer, seed = _warm(rig), next(_SEEDS)
    for to in states if again else states[:-1]:
        writer.emitted("bench-stream", transitions(messages, seed, to, writer.runtime))
    return _emitting(rig, writer, transitions(messages, seed, states[-1], writer.runtime), deduped=again)


def emit_rows(rig: Rig) -> list[dict[str, Any]]:
    """Each beside the commit of as many events of the sync contract, of the same size."""
    passed = ("queued", "in_flight", "sent")
    cases: list[tuple[str, str, int, Callable[[], Cost]]] = [
        ("events", kind, size, lambda size=size, kind=kind: emission(rig, size, kind))  # type: ignore[misc]
        for kind in ("realistic", "random")
        for size in (1, 25, 100)
    ]
    cases += [
        ("duplicates", "realistic", 1, lambda: emission(rig, 1, again=True)),
        ("duplicates", "realistic", 25, lambda: emission(rig, 25, again=True)),
        ("a message's first transition", "realistic", 1, lambda: transition(rig, 1)),
        ("a message's third transition", "realistic", 1, lambda: transition(rig, 1, passed)),
        ("first transitions of as many messages", "realistic", 25, lambda: transition(rig, 25)),
        ("duplicate of a transition", "realistic", 1, lambda: transition(rig, 1, again=True)),
    ]
    return [_emit_row(rig, name, kind, size, measure()) for name, kind, size, measure in cases]


def markers(rig: Rig, listed: int = 2) -> dict[str, Cost]:
    """Of a process that has changed a marker of the runtime a moment ago."""
    writer = process(rig, new_runtime(rig))
    made = [_create(writer) for _ in range(listed)][-1]

    def move(revision: int) -> None:
        asked = {"position": {"lat": 46.5 + revision / 1000, "lon": 7.9}, "expected_revision": revision}
        writer.markers.move(IDENTITY, writer.runtime, made, asked)

    def stale() -> None:
        try:
            move(1)
        except Conflict:
            return
        raise AssertionError("a stale move was accepted")

    created, moved = _cost(rig, lambda: _create(writer)), _cost(rig, lambda: move(1))
    for revision in range(2, MOVES):
        move(revision)
    return {
        "create": created,
        "first move": moved,
        f"move after {MOVES - 1} others": _cost(rig, lambda: move(MOVES)),
        "move with a stale revision": _cost(rig, stale),
        "delete": _cost(rig, lambda: writer.markers.delete(IDENTITY, writer.runtime, made, MOVES + 1)),
        f"list of {listed}": _cost(rig, lambda: writer.markers.list(IDENTITY, writer.runtime, None, None, None)),
    }


def marker_rows(rig: Rig) -> list[dict[str, Any]]:
    return [{"request": name, **cost.row()} for name, cost in markers(rig, LISTED).items()]


def _emit_row(rig: Rig, name: str, kind: str, size: int, cost: Cost) -> dict[str, Any]:
    bare = (duplicate if "duplicate" in name else fresh)(rig, kind, size)
    return {
        "emitted": name,
        "payload": kind,
        "events": size,
        **cost.row(),
        "write units per event": round(cost.writes / size, 2),
        "bare commit: calls": bare.calls,
        "bare commit: write units per event": bare.units,
    }


def _warm(rig: Rig) -> Process:
    writer = process(rig, new_runtime(rig))
    writer.emitted("bench-stream", stream_events("realistic", 1, next(_SEEDS), writer.runtime))
    return writer


def _emitting(rig: Rig, writer: Process, batch: list[dict[str, Any]], *, deduped: bool) -> Cost:
    results: list[Emitted] = []
    cost = _cost(rig, lambda: results.extend(writer.emitted("bench-stream", batch)))
    assert {result.deduped for result in results} == {deduped}
    return cost


def _create(writer: Process) -> str:
    asked = {"label": "Base camp", "position": {"lat": 46.5, "lon": 7.9}}
    return str(writer.markers.create(IDENTITY, writer.runtime, asked)["marker"]["marker_id"])


def _cost(rig: Rig, work: Callable[[], object]) -> Cost:
    with rig.tally.measured() as counts:
        work()
    return Cost(counts)
